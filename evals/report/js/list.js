// The list of episodes: filters, search and order live in the address, so that a view can be shared.
const list = { params: new URLSearchParams(), shown: [], limit: 200 };

const COLUMNS = [
  ["n", "#", (e) => e.n],
  ["goal", "Task", (e) => e.goal],
  ["c", "Condition", (e) => conditionNames.get(e.c)],
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
  const wanted = inSet(params);
  const found = data.episodes.filter((e) => {
    if (!wanted(e)) return false;
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

function drawHeads(params) {
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
      scope: "col", class: NUMBERS.has(key) && key !== "n" ? "number" : null,
      "aria-sort": active ? (down ? "descending" : "ascending") : null,
    }, el("button", { type: "button", onclick: sort, "data-sort": key }, title + arrow));
  }));
}

function listRow(e) {
  const link = el("a", { href: episodeLink(e) }, titleOf(e));
  const below = goalBelow(e) ? el("div", { class: "clamped muted" }, goalBelow(e)) : null;
  const task = el("td", { title: e.task }, link, below, whyLine(e));
  const number = (value, quiet) => el("td", { class: `number${quiet ? " muted" : ""}` },
    value.toLocaleString("en"));
  const cells = [
    el("td", { class: "muted" }, String(e.n)), task,
    el("td", null, conditionNames.get(e.c)), el("td", null, typeNames.get(e.type)),
    el("td", null, outcomeBadge(e)),
  ];
  if (data.scored) cells.push(number(e.score));
  cells.push(number(e.steps), number(e.invalid, !e.invalid), number(e.drift, !e.drift),
    number(e.tokens));
  return el("tr", null, cells);
}

function drawRows() {
  const rows = list.shown.slice(0, list.limit).map(listRow);
  byId("list").tBodies[0].replaceChildren(...rows);
  byId("more").hidden = list.shown.length <= list.limit;
  const won = list.shown.filter((e) => e.won).length;
  const errors = list.shown.filter(isError).length;
  byId("found").textContent = `${list.shown.length} of ${data.episodes.length} episodes: ${won} won, `
    + `${list.shown.length - won - errors} lost${errors ? `, ${errors} ${errors === 1 ? "error" : "errors"}` : ""}`;
}

function showList(params) {
  list.params = params;
  list.limit = 200;
  list.shown = chosenEpisodes(params);
  const form = byId("filters");
  for (const name of ["c", "t", "o", "q"]) {
    const field = form.elements[name];
    if (field !== document.activeElement) field.value = params.get(name) || "";
  }
  drawSet(params);
  drawHeads(params);
  drawRows();
}

function prepareList() {
  const form = byId("filters");
  form.elements.c.append(...data.conditions.map(([v, name]) => el("option", { value: v }, name)));
  form.elements.t.append(...data.types.map(([v, name]) => el("option", { value: v }, name)));
  const apply = () => {
    const next = new URLSearchParams(list.params);
    for (const name of ["c", "t", "o", "q"]) next.set(name, form.elements[name].value);
    history.replaceState(null, "", listHash(next));
    showList(next);
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { location.hash = "#/episodes"; }));
  byId("more").addEventListener("click", () => { list.limit += 500; drawRows(); });
}
