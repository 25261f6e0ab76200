// The list of episodes. Filters, search and order are in the address, so that a view can be shared.
// A search of the steps begins after this pause in typing.
const TYPING_MS = 250;
// Screen readers announce the progress of a search at most once in this time.
const PROGRESS_MS = 400;
const ROWS = 200;
const HITS = 5;
const FILTERS = ["c", "t", "o", "q", ...STEP_FIELDS];
const list = { params: new URLSearchParams(), shown: [], limit: ROWS, drawn: 0, hits: new Map() };

const COLUMNS = [
  ["n", "#", (e) => e.n],
  ["goal", "Task", (e) => e.goal],
  ["c", "Condition", (e) => rankOf.get(e.c)],
  ["type", "Type", (e) => typeNames.get(e.type)],
  ["outcome", "Outcome", (e) => (e.won ? 0 : isError(e) ? 2 : 1)],
  ["steps", "Steps", (e) => e.steps],
  ["invalid", "Rejected", (e) => e.invalid],
  ["belief_errors", "Belief errors", (e) => e.belief_errors],
  ["tokens", "Tokens", (e) => e.tokens],
];
if (data.scored) COLUMNS.splice(5, 0, ["score", "Score", (e) => e.score]);
const TEXTS = ["n", "goal", "c", "type", "outcome"];

const OUTCOMES = {
  won: (e) => e.won, lost: (e) => !e.won && !isError(e), error: isError, belief_errors: (e) => e.belief_errors > 0,
};

function chosenEpisodes(params) {
  const words = (params.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
  const [set, condition, type, outcome] = ["set", "c", "t", "o"].map((name) => params.get(name));
  const members = set && new Set((data.sets[set] || { of: [] }).of);
  const fits = OUTCOMES[outcome] || ((e) => !outcome || e.mode === outcome);
  const episodes = data.episodes.filter((e) => {
    if (members && !members.has(e.number)) return false;
    if ((condition && e.c !== condition) || (type && e.type !== type) || !fits(e)) return false;
    const text = `${e.goal} ${e.task} ${e.c} ${e.error} ${e.cause} ${e.why}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const order = params.get("s") || "n";
  const [, , read] = COLUMNS.find(([key]) => key === order.replace(/^-/, "")) || COLUMNS[0];
  const sign = order.startsWith("-") ? -1 : 1;
  return episodes.sort((a, b) => sign * (read(a) < read(b) ? -1 : read(a) > read(b) ? 1 : 0));
}

function listHash(params) {
  const query = new URLSearchParams([...params].filter(([, value]) => value));
  return `#/episodes${[...query].length ? `?${query}` : ""}`;
}

// Shows which figure of a table the list belongs to, with a link to all episodes.
function drawSet(params) {
  const name = params.get("set");
  const rest = new URLSearchParams(params);
  rest.delete("set");
  byId("set").hidden = !name;
  if (!name) return;
  const set = data.sets[name];
  byId("set").replaceChildren(
    set ? `Episodes of one figure: ${set.title}. ` : "This run has no such set of episodes. ",
    el("a", { href: `#/results/${encode(name.split("/")[0])}` }, "Show the table"), " \u00b7 ",
    el("a", { href: listHash(rest), id: "unset" }, "Show all episodes"));
}

function drawHeads(params) {
  const focused = document.activeElement?.dataset.sort;
  const order = params.get("s") || "n";
  byId("list").tHead.rows[0].replaceChildren(...COLUMNS.map(([key, title]) => {
    const active = order.replace(/^-/, "") === key;
    const down = active && order.startsWith("-");
    const sort = () => {
      const next = new URLSearchParams(params);
      next.set("s", active && !down ? `-${key}` : key);
      location.hash = listHash(next);
    };
    const arrow = active ? (down ? " \u2193" : " \u2191") : "";
    return el("th", {
      scope: "col", class: TEXTS.includes(key) ? null : "number",
      "aria-sort": active ? (down ? "descending" : "ascending") : null,
    }, el("button", { type: "button", onclick: sort, "data-sort": key }, title + arrow));
  }));
  if (focused) byId("list").querySelector(`[data-sort=${focused}]`).focus();
}

function listRow(e) {
  const contents = {
    n: String(e.n),
    goal: [
      el("a", { href: episodeLink(e), class: "row-link", "data-log": e.log }, titleOf(e)),
      goalBelow(e) ? el("div", { class: "clamped muted" }, goalBelow(e)) : null, whyLine(e),
    ],
    c: conditionNames.get(e.c), type: typeNames.get(e.type), outcome: outcomeBadge(e),
  };
  return el("tr", null, COLUMNS.map(([key]) => el("td", {
    title: key === "goal" ? e.task : null,
    class: key === "goal" ? "task" : key === "n" ? "muted" : TEXTS.includes(key) ? null
      : `number${e[key] ? "" : " muted"}`,
  }, contents[key] ?? e[key].toLocaleString("en"))));
}

// Below an episode, the first steps that match, each with a link.
function hitsRow(e) {
  const hits = list.hits.get(e) || [];
  const lines = hits.slice(0, HITS).map((hit) => el("li", null,
    el("a", { href: episodeLink(e, hit.step), class: "row-link hit", "data-log": e.log },
      `Step ${hit.step}`), " ", el("span", { class: "muted" }, hit.where), " ", hit.before,
    hit.match ? el("mark", null, hit.match) : null, hit.after));
  const rest = hits.length - lines.length;
  return lines.length ? [el("tr", { class: "hit-row" },
    el("td", { colspan: COLUMNS.length }, el("ul", { class: "hits" }, lines,
      rest ? el("li", { class: "muted" }, `and ${rest} more`) : null)))] : [];
}

// Appends new rows; during a search the rows already drawn stay as they are.
function drawRows() {
  const next = list.shown.slice(list.drawn, list.limit);
  byId("list").tBodies[0].append(...next.flatMap((e) => [listRow(e), ...hitsRow(e)]));
  list.drawn += next.length;
  byId("more").hidden = list.shown.length <= list.limit;
}

function summarize(note) {
  const won = list.shown.filter((e) => e.won).length;
  const errors = list.shown.filter(isError).length;
  const steps = [...list.hits.values()].reduce((n, hits) => n + hits.length, 0);
  const where = asksForSteps(list.params) ? `${steps} ${steps === 1 ? "step" : "steps"} in ` : "";
  byId("summary").textContent = `${where}${list.shown.length} of ${data.episodes.length} episodes: `
    + `${won} won, ${list.shown.length - won - errors} lost`
    + `${errors ? `, ${errors} ${errors === 1 ? "error" : "errors"}` : ""}${note}`;
}

function searchList(episodes, params) {
  summarize("; searching");
  let latest = performance.now();
  searchSteps(episodes, params, (e, hits) => {
    list.shown.push(e);
    list.hits.set(e, hits);
  }, (seen, unread, done) => {
    drawRows();
    if (!done && performance.now() - latest < PROGRESS_MS) return;
    latest = performance.now();
    summarize((done ? "" : `; searched ${seen} of ${episodes.length}`)
      + (unread ? `; ${unread} without a readable step log` : ""));
  });
}

function showList(params) {
  const form = byId("filters");
  for (const name of FILTERS) {
    const field = form.elements[name];
    if (field !== document.activeElement) field.value = params.get(name) || "";
  }
  drawSet(params);
  if (STEP_FIELDS.some((name) => name !== "x" && params.get(name))) byId("step-filters").open = true;
  // On return the list is as it was left.
  const key = `${listHash(params)} ${data.episodes.length}`;
  if (key === list.key) return;
  Object.assign(list, { key, params, shown: [], limit: ROWS, drawn: 0, hits: new Map() });
  search.turn += 1;
  drawHeads(params);
  byId("list").tBodies[0].replaceChildren();
  const episodes = chosenEpisodes(params);
  if (asksForSteps(params)) {
    searchList(episodes, params);
    return;
  }
  list.shown = episodes;
  drawRows();
  summarize("");
}

// Rows by keyboard: the focus is the cursor, so Enter opens the focused row.
function moveRow(by) {
  const rows = () => [...byId("list").querySelectorAll("a.row-link")];
  const current = rows().indexOf(document.activeElement);
  if (by === 1 && current === rows().length - 1 && !byId("more").hidden) byId("more").click();
  const links = rows();
  const next = current < 0 && by === -1 ? links.length - 1 : current + by;
  links[Math.min(Math.max(0, next), links.length - 1)]?.focus();
}

function focusRowOf(e) {
  const links = [...byId("list").querySelectorAll("a.row-link")].filter((a) => a.dataset.log === e.log);
  (links.find((a) => a.getAttribute("href") === list.opened) || links[0])?.focus();
}

function prepareList() {
  const form = byId("filters");
  const offer = (name, entries) => form.elements[name].append(
    ...entries.map(([value, text]) => el("option", { value }, text)));
  offer("c", data.conditions);
  offer("t", data.types);
  byId("rule-ids").append(...Object.entries(data.rules).map(([value, text]) =>
    el("option", { value }, text.slice(0, LONG))));
  // A phone has no room for all filters.
  byId("step-filters").open = matchMedia("(min-width: 761px)").matches;
  const apply = () => {
    if (view !== "episodes") return;
    const next = new URLSearchParams(list.params);
    for (const name of FILTERS) next.set(name, form.elements[name].value);
    history.replaceState(null, "", listHash(next));
    showList(next);
  };
  let typing = 0;
  form.addEventListener("input", (event) => {
    clearTimeout(typing);
    if (["x", "r"].includes(event.target.name)) typing = setTimeout(apply, TYPING_MS);
    else apply();
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
  form.addEventListener("reset", () => setTimeout(() => { location.hash = "#/episodes"; }));
  byId("more").addEventListener("click", () => { list.limit += 500; drawRows(); });
  byId("list").addEventListener("click", (event) => {
    const link = event.target.closest("a.row-link");
    if (link) list.opened = link.getAttribute("href");
  });
}
