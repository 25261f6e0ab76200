// The same task under two conditions, with the step where they part.
const pairing = { sides: null, logs: null, selected: 1, parted: 0 };

function partingStep(first, second) {
  const most = Math.max(first.steps.length, second.steps.length);
  for (let i = 0; i < most; i += 1) {
    const one = first.steps[i];
    const two = second.steps[i];
    if (!one || !two || one.action !== two.action) return i + 1;
  }
  return 0;
}

function sharedTasks(first, second) {
  return data.episodes
    .filter((e) => e.c === first && episodesByKey.has(keyOf(second, e.task)))
    .sort((a, b) => a.n - b.n);
}

function chooser(first, second, task) {
  const select = (name, options, value) => el("label", null, name[0].toUpperCase() + name.slice(1),
    el("select", { name }, options.map(([v, text]) =>
      el("option", { value: v, selected: v === value }, text))));
  const tasks = sharedTasks(first, second).map((e) => {
    const other = episodesByKey.get(keyOf(second, e.task));
    const differs = e.won === other.won ? "" : ` (${e.won ? "first" : "second"} won)`;
    return [e.task, `${e.n}: ${titleOf(e)}${differs}`];
  });
  const form = el("form", { class: "filters", id: "chooser", "aria-label": "Choose what to compare" },
    select("first", data.conditions, first), select("second", data.conditions, second),
    select("task", tasks, task));
  form.addEventListener("change", () => {
    const chosen = new FormData(form);
    const kept = episodesByKey.has(keyOf(chosen.get("second"), chosen.get("task")))
      && episodesByKey.has(keyOf(chosen.get("first"), chosen.get("task")));
    const fallback = sharedTasks(chosen.get("first"), chosen.get("second"))[0];
    const next = kept ? chosen.get("task") : fallback ? fallback.task : "";
    location.hash = compareLink(chosen.get("first"), chosen.get("second"), next);
  });
  return form;
}

function stepCell(e, step, number, open) {
  const label = { "data-label": conditionNames.get(e.c) };
  if (!step) return el("td", { ...label, class: "muted" }, "(ended)");
  const dropped = (step.recalls || []).filter((r) => r.dropped_by).length;
  const rules = Object.values(step.rules || {}).reduce((n, tier) => n + tier.length, 0);
  const more = open ? el("div", { class: "more" },
    driftNote(step),
    step.thought ? el("p", { class: "text" }, step.thought) : null,
    el("p", { class: "muted" }, (step.state_lines || []).join("; ")),
    el("p", { class: "muted" }, `${rules} rules, ${(step.recalls || []).length} memories recalled, `
      + `${dropped} dropped`),
    el("ul", { class: "plain" }, (step.recalls || []).map(memoryLine)),
    el("a", { href: episodeLink(e, number) }, "Open this step")) : null;
  return el("td", label,
    el("div", { class: "action" }, step.action || "(no action could be read)"),
    el("div", { class: `result text${step.failed ? " failed-text" : ""}` }, step.result), more);
}

function drawPairing() {
  const [one, two] = pairing.sides;
  const [first, second] = pairing.logs;
  const most = Math.max(first.steps.length, second.steps.length);
  const rows = [];
  for (let number = 1; number <= most; number += 1) {
    const open = number === pairing.selected;
    const parted = number === pairing.parted;
    rows.push(el("tr", {
      class: parted ? "parted" : null, "aria-current": open ? "step" : null,
      id: `pair-${number}`,
    },
    el("th", { scope: "row" },
      el("button", { type: "button", "aria-expanded": open ? "true" : "false",
        "aria-label": `Step ${number}`, onclick: () => selectPair(number) }, String(number)),
      parted ? el("div", null, el("span", { class: "badge warn" }, "they part")) : null),
    stepCell(one, first.steps[number - 1], number, open),
    stepCell(two, second.steps[number - 1], number, open)));
  }
  byId("pairing").replaceChildren(el("table", { class: "split" },
    el("thead", null, el("tr", null, el("th", { scope: "col" }, "Step"),
      [one, two].map((e) => el("th", { scope: "col" }, el("a", { href: episodeLink(e) },
        conditionNames.get(e.c)), " ", outcomeBadge(e), " ",
      el("span", { class: "muted" }, `${e.steps} steps`))))),
    el("tbody", null, rows)));
}

function selectPair(number) {
  if (!pairing.logs) return;
  const most = Math.max(...pairing.logs.map((log) => log.steps.length));
  pairing.selected = Math.min(Math.max(1, number), most);
  drawPairing();
  const [one, two] = pairing.sides;
  history.replaceState(null, "", compareLink(one.c, two.c, one.task, pairing.selected));
  const row = byId(`pair-${pairing.selected}`);
  row.scrollIntoView({ block: "center" });
  row.querySelector("button").focus({ preventScroll: true });
}

async function showComparison(first, second, task, number) {
  const view = byId("view-compare");
  const names = data.conditions.map(([c]) => c);
  const one = first || names[0];
  const two = second || names[names.length - 1];
  const chosen = task || (sharedTasks(one, two)[0] || {}).task;
  const sides = [one, two].map((c) => episodesByKey.get(keyOf(c, chosen)));
  pairing.sides = sides;
  pairing.logs = null;
  const parting = el("p", { id: "parting", role: "status" });
  view.replaceChildren(el("h1", null, sides[0] ? titleOf(sides[0]) : "Side by side"),
    sides[0] && goalBelow(sides[0]) ? el("p", { class: "goal" }, goalBelow(sides[0])) : "",
    chooser(one, two, chosen), parting, el("div", { id: "pairing" }));
  if (!sides[0] || !sides[1]) {
    parting.textContent = "These two conditions have no finished task in common.";
    return;
  }
  const asked = location.hash;
  try {
    const logs = await Promise.all(sides.map(loadLog));
    if (location.hash !== asked || pairing.sides !== sides) return;  // as in showEpisode
    pairing.logs = logs;
    pairing.parted = partingStep(...logs);
    const jump = el("button", { type: "button", id: "jump",
      onclick: () => selectPair(pairing.parted) }, `Go to step ${pairing.parted}`);
    if (pairing.parted) parting.replaceChildren(`They part at step ${pairing.parted}. `, jump);
    else parting.textContent = "Both took the same actions.";
    pairing.selected = number || pairing.parted || 1;
    drawPairing();
    if (number) byId(`pair-${pairing.selected}`)?.scrollIntoView({ block: "center" });
  } catch (problem) {
    parting.replaceChildren(el("span", { class: "notice" }, problem.message));
  }
}
