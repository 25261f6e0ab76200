// The same task under two conditions, with the step where they part.
const pairing = { sides: null, logs: null, selected: 1, parted: 0 };

const lengthOf = (logs) => Math.max(...logs.map((log) => log.steps.length));

function partingStep(logs) {
  for (let i = 0; i < lengthOf(logs); i += 1) {
    const [first, second] = logs.map((log) => log.steps[i]);
    if (!first || !second || first.action !== second.action) return i + 1;
  }
  return 0;
}

const sharedTasks = (first, second) => data.episodes
  .filter((e) => e.c === first && episodesByKey.has(keyOf(second, e.task)));

// What ended in an error says nothing about the two.
const comparable = (first, second) => sharedTasks(first, second)
  .map((e) => [e, episodesByKey.get(keyOf(second, e.task))])
  .filter((pair) => !pair.some(isError));

const onlyOneWon = ([a, b]) => a.won !== b.won;
const CONTRASTS = [onlyOneWon, ([a, b]) => Math.abs(a.score - b.score),
  ([a, b]) => Math.abs(a.invalid - b.invalid), ([a, b]) => Math.abs(a.steps - b.steps)];

function byContrast(first, second) {
  const contrast = CONTRASTS.find((measure) => measure(first) !== measure(second));
  return contrast ? contrast(second) - contrast(first) : 0;
}

// Opened without a choice, the view has a task in which the two differ most; of the first few that
// only one of them won, one where the step at which they part was refused.
const LOOKED_AT = 6;

async function tellingTask(first, second) {
  const pairs = comparable(first, second).sort(byContrast);
  for (const pair of pairs.filter(onlyOneWon).slice(0, LOOKED_AT)) {
    const logs = await Promise.all(pair.map(loadLog)).catch(() => []);
    const parted = logs.length ? partingStep(logs) : 0;
    if (logs.some((log) => log.steps[parted - 1]?.failed)) return pair[0].task;
  }
  return (pairs[0] || sharedTasks(first, second))[0]?.task;
}

// Beside the first condition stands the one that ended most tasks otherwise; of equals the last.
function tellingSecond(first) {
  const differing = (second) => comparable(first, second).filter(onlyOneWon).length;
  const others = data.conditions.map(([c]) => c).filter((c) => c !== first);
  return others.toSorted((a, b) => differing(a) - differing(b)).at(-1) || first;
}

function chooser(first, second, task) {
  const select = (name, title, options, value) => el("label", null, title, el("select", { name },
    options.map(([v, text]) => el("option", { value: v, selected: v === value }, text))));
  const tasks = sharedTasks(first, second).map((e) => {
    const other = episodesByKey.get(keyOf(second, e.task));
    const differs = e.won === other.won ? "" : ` (${e.won ? "first" : "second"} won)`;
    return [e.task, `${e.n}: ${titleOf(e)}${differs}`];
  });
  const form = el("form", { class: "filters", id: "chooser", "aria-label": "Choose what to compare" },
    select("first", "First", data.conditions, first),
    select("second", "Second", data.conditions, second), select("task", "Task", tasks, task));
  form.addEventListener("change", () => {
    const [a, b, wish] = ["first", "second", "task"].map((name) => form.elements[name].value);
    const common = sharedTasks(a, b).map((e) => e.task);
    location.hash = compareLink(a, b, common.includes(wish) ? wish : "");
  });
  return form;
}

function stepCell(e, step, number, open) {
  if (!step) return el("td", { class: "muted" }, "(ended)");
  const recalls = step.recalls || [];
  const shown = recalls.filter((r) => !r.dropped_by).length;
  const rules = Object.values(step.rules || {}).flat().length;
  return el("td", null,
    el("div", { class: "action" }, step.action || "(no action could be read)"),
    el("div", { class: `result text${step.failed ? " failed-text" : ""}` }, step.result),
    open ? el("div", { class: "more" },
      beliefErrorNote(step),
      step.thought ? el("p", { class: "text" }, step.thought) : null,
      el("p", { class: "muted" }, (step.state_lines || []).join("; ")),
      el("p", { class: "muted" },
        `${rules} rules, ${shown} of ${recalls.length} memories shown`),
      el("ul", { class: "plain" }, recalls.map(memoryLine)),
      el("a", { href: episodeLink(e, number) }, "Open this step")) : null);
}

function pairRow(number) {
  const open = number === pairing.selected;
  const parted = number === pairing.parted;
  return el("tr", { class: parted ? "parted" : null, "aria-current": open ? "step" : null,
    id: `pair-${number}` },
  el("th", { scope: "row" },
    el("button", { type: "button", "aria-expanded": open ? "true" : "false",
      "aria-label": `Step ${number}`, onclick: () => selectPair(number) }, String(number)),
    parted ? el("div", null, el("span", { class: "badge warn" }, "they part")) : null),
  pairing.sides.map((e, i) => stepCell(e, pairing.logs[i].steps[number - 1], number, open)));
}

function drawPairing() {
  const numbers = Array.from({ length: lengthOf(pairing.logs) }, (_, i) => i + 1);
  byId("pairing").replaceChildren(el("table", { class: "split" },
    el("thead", null, el("tr", null, el("th", { scope: "col" }, "Step"),
      pairing.sides.map((e) => el("th", { scope: "col" }, el("a", { href: episodeLink(e) },
        conditionNames.get(e.c)), " ", outcomeBadge(e), " ",
      el("span", { class: "muted" }, `${e.steps} steps`))))),
    el("tbody", null, numbers.map(pairRow))));
}

function selectPair(number) {
  if (!pairing.logs) return;
  pairing.selected = Math.min(Math.max(1, number), lengthOf(pairing.logs));
  drawPairing();
  const [first, second] = pairing.sides;
  history.replaceState(null, "", compareLink(first.c, second.c, first.task, pairing.selected));
  const row = byId(`pair-${pairing.selected}`);
  row.scrollIntoView();
  row.querySelector("button").focus({ preventScroll: true });
}

async function showComparison(first, second, task, number) {
  const start = first || data.conditions[0][0];
  const pair = [start, second || tellingSecond(start)];
  const address = location.hash;
  pairing.logs = null;
  const shown = task || await tellingTask(...pair);
  if (location.hash !== address) return;  // as in showEpisode
  const sides = pair.map((c) => episodesByKey.get(keyOf(c, shown)));
  const [lead] = sides;
  pairing.sides = sides;
  const parting = el("p", { id: "parting", role: "status" });
  byId("view-compare").replaceChildren(el("h1", null, lead ? titleOf(lead) : "Side by side"),
    lead && goalBelow(lead) ? el("p", { class: "goal" }, goalBelow(lead)) : "",
    chooser(...pair, shown), parting, el("div", { id: "pairing" }));
  if (!sides.every(Boolean)) {
    parting.textContent = "These two conditions have no finished task in common.";
    return;
  }
  try {
    const logs = await Promise.all(sides.map(loadLog));
    if (location.hash !== address || pairing.sides !== sides) return;
    const parted = partingStep(logs);
    Object.assign(pairing, { logs, parted, selected: number || parted || 1 });
    parting.replaceChildren(...(parted ? [`They part at step ${parted}. `, el("button",
      { type: "button", onclick: () => selectPair(parted) }, `Go to step ${parted}`)]
      : ["Both took the same actions."]));
    drawPairing();
    byId(`pair-${pairing.selected}`)?.scrollIntoView({ behavior: "instant" });
  } catch (problem) {
    parting.replaceChildren(el("span", { class: "notice" }, problem.message));
  }
}
