// The same task under two conditions, with the step where they diverge.
const pairing = { sides: null, logs: null, selected: 1, diverged: 0 };

const lengthOf = (logs) => Math.max(...logs.map((log) => log.steps.length));

function divergingStep(logs) {
  for (let i = 0; i < lengthOf(logs); i += 1) {
    const [first, second] = logs.map((log) => log.steps[i]);
    if (!first || !second || first.action !== second.action) return i + 1;
  }
  return 0;
}

const sharedTasks = (first, second) => data.episodes
  .filter((e) => e.c === first && episodesByKey.has(keyOf(second, e.task)));

// Episodes that ended in an error are not compared.
const comparable = (first, second) => sharedTasks(first, second)
  .map((e) => [e, episodesByKey.get(keyOf(second, e.task))])
  .filter((pair) => !pair.some(isError));

const onlyOneWon = ([a, b]) => a.won !== b.won;
// By default the first condition is compared with the one that has the most discordant games; of
// equals the last.
function contrastCondition(first) {
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
  const form = el("form", { class: "filters", id: "chooser", "aria-label": "Choose conditions and task" },
    select("first", "First", data.conditions, first),
    select("second", "Second", data.conditions, second), select("task", "Task", tasks, task));
  form.addEventListener("change", () => {
    const [a, b, chosen] = ["first", "second", "task"].map((name) => form.elements[name].value);
    const common = sharedTasks(a, b).map((e) => e.task);
    location.hash = compareLink(a, b, common.includes(chosen) ? chosen : "");
  });
  return form;
}

function stepCell(e, step, number, open) {
  if (!step) return el("td", { class: "muted" }, "(ended)");
  const recalls = step.recalls || [];
  const shown = recalls.filter((r) => !r.dropped_by).length;
  const rules = Object.values(step.rules || {}).flat().length;
  return el("td", null,
    el("div", { class: "action" }, step.action || "(no readable action)"),
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
  const diverged = number === pairing.diverged;
  return el("tr", { class: diverged ? "diverged" : null, "aria-current": open ? "step" : null,
    id: `pair-${number}` },
  el("th", { scope: "row" },
    el("button", { type: "button", "aria-expanded": open ? "true" : "false",
      "aria-label": `Step ${number}`, onclick: () => selectPair(number) }, String(number)),
    diverged ? el("div", null, el("span", { class: "badge warn" }, "diverges")) : null),
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
  const pair = [start, second || contrastCondition(start)];
  const address = location.hash;
  pairing.logs = null;
  const tasks = [comparable(...pair).find(onlyOneWon)?.[0], ...sharedTasks(...pair)];
  const shown = task || tasks.find(Boolean)?.task;
  const sides = pair.map((c) => episodesByKey.get(keyOf(c, shown)));
  const [lead] = sides;
  pairing.sides = sides;
  const divergence = el("p", { id: "divergence", role: "status" });
  byId("view-compare").replaceChildren(el("h1", null, lead ? titleOf(lead) : "Side by side"),
    lead && goalBelow(lead) ? el("p", { class: "goal" }, goalBelow(lead)) : "",
    chooser(...pair, shown), divergence, el("div", { id: "pairing" }));
  if (!sides.every(Boolean)) {
    divergence.textContent = "These two conditions have no finished task in common.";
    return;
  }
  try {
    const logs = await Promise.all(sides.map(loadLog));
    if (location.hash !== address || pairing.sides !== sides) return;
    const diverged = divergingStep(logs);
    Object.assign(pairing, { logs, diverged, selected: number || diverged || 1 });
    divergence.replaceChildren(...(diverged ? [`The episodes diverge at step ${diverged}. `, el("button",
      { type: "button", onclick: () => selectPair(diverged) }, `Go to step ${diverged}`)]
      : ["Both took the same actions at every step."]));
    drawPairing();
    byId(`pair-${pairing.selected}`)?.scrollIntoView({ behavior: "instant" });
  } catch (problem) {
    divergence.replaceChildren(el("span", { class: "notice" }, problem.message));
  }
}

const VIEWS = ["episode", "compare"];

function openView(name, parts) {
  if (name === "compare") {
    show("compare");
    showComparison(parts[0], parts[1], parts[2], Number.parseInt(parts[3], 10) || 0);
    return;
  }
  show("episode");
  const [condition, task, step] = parts.length ? parts : [data.episodes[0].c, data.episodes[0].task];
  showEpisode(condition, task, Number.parseInt(step, 10) || 1, name === "transcript");
}

const toList = () => { location.href = `${data.home}#/episodes`; };
const KEYS = {
  episode: {
    ...moves((by) => goToStep(viewer.step + by), "ArrowRight", "ArrowLeft"),
    n: () => neighbour(1), p: () => neighbour(-1), t: switchReading, Escape: toList,
  },
  compare: {
    ...moves((by) => selectPair(pairing.selected + by), "ArrowRight", "ArrowLeft"),
    d: () => { if (pairing.diverged) selectPair(pairing.diverged); }, Escape: toList,
  },
};
