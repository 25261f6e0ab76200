// The list of episodes. Filters, search and order are in the address, so that a view can be shared.
const ROWS = 200;
const FILTERS = ["c", "t", "o", "q"];
const list = { params: new URLSearchParams(), shown: [], limit: ROWS, drawn: 0 };

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

// The filters that a figure of a table links with, beside those of the form.
const OF_FIGURE = {
  run: (e, value) => e.run === value,
  task: (e, value) => e.task.startsWith(value),
  counted: (e) => e.counted,
  failure_mode: (e, value) => value.split(",").includes(e.mode),
  cause: (e, value) => value.split(",").includes(e.cause),
  broken: (e, value) => e.broken.includes(value),
};
const figureFilters = (params) => Object.keys(OF_FIGURE).filter((name) => params.get(name));

function chosenEpisodes(params) {
  const words = (params.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
  const [condition, type, outcome] = ["c", "t", "o"].map((name) => params.get(name));
  const fits = OUTCOMES[outcome] || ((e) => !outcome || e.mode === outcome);
  const filters = figureFilters(params);
  const episodes = data.episodes.filter((e) => {
    if (!filters.every((name) => OF_FIGURE[name](e, params.get(name)))) return false;
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

// Shows the filters that the form does not have, with a link to all episodes.
function drawSet(params) {
  const filters = figureFilters(params);
  const rest = new URLSearchParams(params);
  filters.forEach((name) => rest.delete(name));
  byId("set").hidden = !filters.length;
  const named = (name) => (name === "counted" ? "counted in rates"
    : `${name.replaceAll("_", " ")} ${params.get(name)}`);
  byId("set").replaceChildren(`Episodes of one figure: ${filters.map(named).join("; ")}. `,
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
      el("a", { href: episodeLink(e), class: "row-link" }, titleOf(e)),
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

// Appends new rows.
function drawRows() {
  const next = list.shown.slice(list.drawn, list.limit);
  byId("list").tBodies[0].append(...next.map(listRow));
  list.drawn += next.length;
  byId("more").hidden = list.shown.length <= list.limit;
}

function summarize() {
  const won = list.shown.filter((e) => e.won).length;
  const errors = list.shown.filter(isError).length;
  byId("summary").textContent = `${list.shown.length} of ${data.episodes.length} episodes: `
    + `${won} won, ${list.shown.length - won - errors} lost`
    + `${errors ? `, ${errors} ${errors === 1 ? "error" : "errors"}` : ""}`;
}

function showList(params) {
  const form = byId("filters");
  for (const name of FILTERS) {
    const field = form.elements[name];
    if (field !== document.activeElement) field.value = params.get(name) || "";
  }
  drawSet(params);
  // On return the list is as it was left.
  const key = `${listHash(params)} ${data.episodes.length}`;
  if (key === list.key) return;
  Object.assign(list, { key, params, shown: chosenEpisodes(params), limit: ROWS, drawn: 0 });
  drawHeads(params);
  byId("list").tBodies[0].replaceChildren();
  drawRows();
  summarize();
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

function prepareList() {
  const form = byId("filters");
  const offer = (name, entries) => form.elements[name].append(
    ...entries.map(([value, text]) => el("option", { value }, text)));
  offer("c", data.conditions);
  offer("t", data.types);
  const apply = () => {
    if (view !== "episodes") return;
    const next = new URLSearchParams(list.params);
    for (const name of FILTERS) next.set(name, form.elements[name].value);
    history.replaceState(null, "", listHash(next));
    showList(next);
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
  form.addEventListener("reset", () => setTimeout(() => { location.hash = "#/episodes"; }));
  byId("more").addEventListener("click", () => { list.limit += 500; drawRows(); });
}

const VIEWS = ["results", "episodes"];

function openView(name, [table], query) {
  if (name === "episodes") {
    showList(new URLSearchParams(query));
    show("episodes");
    return;
  }
  show("results");
  if (table) byId(`table-${table}`)?.scrollIntoView();
}

const KEYS = {
  results: {},
  episodes: {
    ...moves(moveRow, "ArrowDown", "ArrowUp"), Escape: () => document.activeElement?.blur(),
    "/": () => byId("filters").elements.q.focus(),
  },
};
prepareList();
