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
    location.hash = compareLink(a, b, common.includes(wish) ? wish : common[0] || "");
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
      driftNote(step),
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
  row.scrollIntoView({ block: "center" });
  row.querySelector("button").focus({ preventScroll: true });
}

async function showComparison(first, second, task, number) {
  const names = data.conditions.map(([c]) => c);
  const pair = [first || names[0], second || names.at(-1)];
  const shown = task || sharedTasks(...pair)[0]?.task;
  const sides = pair.map((c) => episodesByKey.get(keyOf(c, shown)));
  const [lead] = sides;
  Object.assign(pairing, { sides, logs: null });
  const parting = el("p", { id: "parting", role: "status" });
  byId("view-compare").replaceChildren(el("h1", null, lead ? titleOf(lead) : "Side by side"),
    lead && goalBelow(lead) ? el("p", { class: "goal" }, goalBelow(lead)) : "",
    chooser(...pair, shown), parting, el("div", { id: "pairing" }));
  if (!sides.every(Boolean)) {
    parting.textContent = "These two conditions have no finished task in common.";
    return;
  }
  const address = location.hash;
  try {
    const logs = await Promise.all(sides.map(loadLog));
    if (location.hash !== address || pairing.sides !== sides) return;  // as in showEpisode
    const parted = partingStep(logs);
    Object.assign(pairing, { logs, parted, selected: number || parted || 1 });
    parting.replaceChildren(...(parted ? [`They part at step ${parted}. `, el("button",
      { type: "button", onclick: () => selectPair(parted) }, `Go to step ${parted}`)]
      : ["Both took the same actions."]));
    drawPairing();
    if (number) byId(`pair-${number}`)?.scrollIntoView({ block: "center" });
  } catch (problem) {
    parting.replaceChildren(el("span", { class: "notice" }, problem.message));
  }
}
