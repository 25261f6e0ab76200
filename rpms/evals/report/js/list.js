// The list of episodes: filters, search and order live in the address, so that a view can be shared.
// Typing pauses that long before a search of the steps begins.
const TYPING_MS = 250;
// Screen readers say how far a search is; not more often than this.
const TELLING_MS = 400;
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
  ["invalid", "Refused", (e) => e.invalid],
  ["drift", "Drift", (e) => e.drift],
  ["tokens", "Tokens", (e) => e.tokens],
];
if (data.scored) COLUMNS.splice(5, 0, ["score", "Score", (e) => e.score]);
const NUMBERS = new Set(["n", "score", "steps", "invalid", "drift", "tokens"]);

function outcomeFits(e, wanted) {
  if (!wanted) return true;
  if (wanted === "won") return e.won;
  if (wanted === "lost") return !e.won && !isError(e);
  if (wanted === "error") return isError(e);
  if (wanted === "drift") return e.drift > 0;
  return e.mode === wanted;
}

function chosenEpisodes(params) {
  const words = (params.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
  const set = params.get("set");
  const members = set && new Set((data.sets[set] || { of: [] }).of);
  const found = data.episodes.filter((e) => {
    if (members && !members.has(e.number)) return false;
    if (params.get("c") && e.c !== params.get("c")) return false;
    if (params.get("t") && e.type !== params.get("t")) return false;
    if (!outcomeFits(e, params.get("o"))) return false;
    const text = `${e.goal} ${e.task} ${e.c} ${e.error} ${e.cause} ${e.why}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const order = params.get("s") || "n";
  const column = COLUMNS.find(([key]) => key === order.replace(/^-/, "")) || COLUMNS[0];
  const sign = order.startsWith("-") ? -1 : 1;
  const read = column[2];
  return found
    .map((e) => [read(e), e])
    .sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0))
    .map(([, e]) => e);
}

function listHash(params) {
  const kept = new URLSearchParams([...params].filter(([, value]) => value));
  return `#/episodes${[...kept].length ? `?${kept}` : ""}`;
}

// Says which figure of a table the list belongs to, and how to see the others again.
function drawSet(params) {
  const name = params.get("set");
  const rest = new URLSearchParams(params);
  rest.delete("set");
  const set = name && data.sets[name];
  byId("chosen").hidden = !name;
  byId("chosen").replaceChildren(...(name ? [
    set ? `Only these: ${set.title}. ` : "This run has no such set of episodes. ",
    el("a", { href: `#/results/${encode(name.split("/")[0])}` }, "The table"), " \u00b7 ",
    el("a", { href: listHash(rest), id: "unset" }, "All episodes")] : []));
}

function drawHeads(params) {
  const held = document.activeElement?.dataset.sort;
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
      scope: "col", role: "columnheader", class: NUMBERS.has(key) && key !== "n" ? "number" : null,
      "aria-sort": active ? (down ? "descending" : "ascending") : null,
    }, el("button", { type: "button", onclick: sort, "data-sort": key }, title + arrow));
  }));
  if (held) byId("list").querySelector(`[data-sort=${held}]`).focus();
}

// On a narrow screen a row becomes a card; each cell then says what it is.
const cell = (key, attributes, ...children) => el("td", {
  role: "cell", "data-label": COLUMNS.find(([name]) => name === key)[1], ...attributes,
}, children);

function listRow(e) {
  const link = el("a", { href: episodeLink(e), class: "row-link", "data-log": e.log }, titleOf(e));
  const below = goalBelow(e) ? el("div", { class: "clamped muted" }, goalBelow(e)) : null;
  const number = (key, quiet) => cell(key, { class: `number${quiet ? " muted" : ""}` },
    e[key].toLocaleString("en"));
  const cells = [
    cell("n", { class: "muted" }, String(e.n)),
    cell("goal", { class: "task", title: e.task }, link, below, whyLine(e)),
    cell("c", null, conditionNames.get(e.c)), cell("type", null, typeNames.get(e.type)),
    cell("outcome", null, outcomeBadge(e)),
  ];
  if (data.scored) cells.push(number("score"));
  cells.push(number("steps"), number("invalid", !e.invalid), number("drift", !e.drift),
    number("tokens"));
  return el("tr", { role: "row" }, cells);
}

function hitLine(e, hit) {
  return el("li", null, el("a", { href: episodeLink(e, hit.step), class: "row-link hit",
    "data-log": e.log }, `Step ${hit.step}`), " ",
  el("span", { class: "muted" }, hit.where), " ", hit.before,
  hit.found ? el("mark", null, hit.found) : null, hit.after);
}

// Below its episode, every step that fits, each with a link of its own.
function hitsRow(e) {
  const hits = list.hits.get(e);
  if (!hits) return [];
  const lines = el("ul", { class: "hits" }, hits.slice(0, HITS).map((hit) => hitLine(e, hit)));
  const rest = hits.slice(HITS);
  const more = rest.length ? el("button", { type: "button", onclick: () => {
    more.remove();
    lines.append(...rest.map((hit) => hitLine(e, hit)));
  } }, `${rest.length} more`) : null;
  return [el("tr", { class: "found", role: "row" },
    el("td", { colspan: COLUMNS.length, role: "cell" }, lines, more))];
}

// Adds what is new: while a search goes on, rows that are there stay as they are.
function drawRows() {
  const next = list.shown.slice(list.drawn, list.limit);
  byId("list").tBodies[0].append(...next.flatMap((e) => [listRow(e), ...hitsRow(e)]));
  list.drawn += next.length;
  byId("more").hidden = list.shown.length <= list.limit;
}

function tellFound(note) {
  const won = list.shown.filter((e) => e.won).length;
  const errors = list.shown.filter(isError).length;
  const steps = [...list.hits.values()].reduce((n, hits) => n + hits.length, 0);
  const where = asksForSteps(list.params) ? `${steps} ${steps === 1 ? "step" : "steps"} in ` : "";
  byId("found").textContent = `${where}${list.shown.length} of ${data.episodes.length} episodes: `
    + `${won} won, ${list.shown.length - won - errors} lost`
    + `${errors ? `, ${errors} ${errors === 1 ? "error" : "errors"}` : ""}${note}`;
}

function findInSteps(episodes, params) {
  list.shown = [];
  tellFound("; searching");
  let told = performance.now();
  searchSteps(episodes, params, (e, hits) => {
    list.shown.push(e);
    list.hits.set(e, hits);
  }, (seen, unread, done) => {
    drawRows();
    if (!done && performance.now() - told < TELLING_MS) return;
    told = performance.now();
    tellFound((done ? "" : `; searching, ${seen} of ${episodes.length} read`)
      + (unread ? `; ${unread} without a readable log` : ""));
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
  // Whoever comes back finds the list as it was left.
  const key = `${listHash(params)} ${data.episodes.length}`;
  if (key === list.key) return;
  Object.assign(list, { key, params, limit: ROWS, drawn: 0, hits: new Map() });
  stopSearch();
  drawHeads(params);
  byId("list").tBodies[0].replaceChildren();
  const episodes = chosenEpisodes(params);
  if (asksForSteps(params)) {
    findInSteps(episodes, params);
    return;
  }
  list.shown = episodes;
  drawRows();
  tellFound("");
}

// Rows by keyboard: the focus is the cursor, so Enter opens what it is on.
function moveRow(by) {
  const rows = () => [...byId("list").querySelectorAll("a.row-link")];
  const now = rows().indexOf(document.activeElement);
  if (by === 1 && now === rows().length - 1 && !byId("more").hidden) byId("more").click();
  const links = rows();
  const next = now < 0 && by === -1 ? links.length - 1 : now + by;
  links[Math.min(Math.max(0, next), links.length - 1)]?.focus();
}

function focusRowOf(e) {
  const links = [...byId("list").querySelectorAll("a.row-link")].filter((a) => a.dataset.log === e.log);
  const link = links.find((a) => a.getAttribute("href") === list.opened) || links[0];
  if (link) link.focus();
}

function prepareList() {
  const form = byId("filters");
  form.elements.c.append(...data.conditions.map(([v, name]) => el("option", { value: v }, name)));
  form.elements.t.append(...data.types.map(([v, name]) => el("option", { value: v }, name)));
  byId("rule-ids").append(...Object.entries(data.rules).map(([id, text]) =>
    el("option", { value: id }, text.slice(0, LONG))));
  // On a phone there is no room for all filters at once.
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
