// One episode, step by step or as a transcript.
const viewer = { episode: null, log: null, step: 1, reading: false };

function stepButtons(log, current) {
  return log.steps.map((step, i) => {
    const wrongBelief = (step.belief_errors || []).length > 0;
    return el("button", {
      type: "button",
      class: `${step.failed ? "failed" : ""} ${wrongBelief ? "wrong-belief" : ""}`.trim() || null,
      "aria-label": `Step ${i + 1}${step.failed ? ", rejected" : ""}${wrongBelief ? ", belief error" : ""}`,
      "aria-current": i + 1 === current ? "step" : null, onclick: () => goToStep(i + 1),
    }, String(i + 1));
  });
}

// The place of an error in custom code.
const placePanel = (place) => panel("Traceback",
  el("p", null, place.stage ? `stage ${place.stage}, ` : "",
    el("code", null, `${place.file}:${place.line}`)),
  el("pre", null, place.traceback));

function episodeHead(e) {
  const others = data.conditions
    .filter(([c]) => c !== e.c && episodesByKey.has(keyOf(c, e.task)))
    .map(([c, name]) => el("a", { href: compareLink(e.c, c, e.task) }, name));
  return [
    el("p", { class: "crumbs" }, el("a", { href: `${data.home}#/episodes`, id: "back" },
      "\u2190 Episodes"),
    el("a", { href: viewer.reading ? episodeLink(e) : transcriptLink(e), id: "reading" },
      viewer.reading ? "Step by step" : "Transcript"),
    others.length ? el("span", { class: "muted" }, "Side by side with ",
      others.flatMap((link, i) => (i ? [", ", link] : [link]))) : null),
    el("h1", null, titleOf(e)),
    goalBelow(e) ? el("p", { class: "goal" }, goalBelow(e)) : null,
    el("div", { class: "about" }, outcomeBadge(e), el("span", null, conditionNames.get(e.c)),
      el("span", null, typeNames.get(e.type)),
      data.scored ? el("span", null, `score ${e.score}`) : null,
      el("span", null, `${e.steps} steps, ${e.invalid} rejected, ${e.belief_errors} with belief errors`),
      el("code", null, e.task)),
    e.error ? el("p", { class: "notice" }, e.error) : whyLine(e),
    e.place ? placePanel(e.place) : null,
  ];
}

function drawStep() {
  const { log, step, episode } = viewer;
  const current = log.steps[step - 1];
  const link = (id, title, to) => el("button", { type: "button", id, onclick: () => goToStep(to),
    disabled: to < 1 || to > log.steps.length }, title);
  const strip = el("div", { class: "strip", role: "group", "aria-label": "Steps" },
    stepButtons(log, step));
  byId("steps-of").replaceChildren(
    el("div", { class: "stepper" }, link("previous", "\u2190 Previous", step - 1),
      el("span", { class: "where", role: "status", "aria-live": "polite", id: "where" },
        `Step ${step} of ${log.steps.length}`),
      link("next", "Next \u2192", step + 1), strip),
    el("div", { class: "columns" },
      el("div", null, panel("Observation", plain(current.observation)), decisionPanel(current),
        resultPanel(current), truthPanel(current)),
      el("div", null, beliefPanel(current), memoryPanel(current), rulesPanel(current))),
    promptPanel(current, log), rawPanel(episode, current, log));
  const button = strip.querySelector("[aria-current]");
  strip.scrollLeft = button.offsetLeft - strip.offsetLeft - strip.clientWidth / 2;
  history.replaceState(null, "", episodeLink(episode, step));
}

function goToStep(number) {
  if (!viewer.log) return;
  viewer.step = Math.min(Math.max(1, number), viewer.log.steps.length);
  if (viewer.reading) {
    markTurn(true);
    return;
  }
  const focused = document.activeElement?.id;
  drawStep();
  const again = focused && byId(focused);
  if (again && !again.disabled && byId("view-episode").contains(again)) again.focus();
}

async function showEpisode(condition, task, number, reading) {
  const e = episodesByKey.get(keyOf(condition, task));
  Object.assign(viewer, { reading, episode: e, log: null });
  if (!e) {
    byId("view-episode").replaceChildren(
      el("p", { class: "notice" }, "This run has no such episode."),
      el("a", { href: `${data.home}#/episodes` }, "All episodes"));
    return;
  }
  byId("view-episode").replaceChildren(...episodeHead(e).filter(Boolean), el("div",
    { id: "steps-of" }, el("p", { class: "muted" }, "Loading the step log.")));
  const address = location.hash;
  try {
    const log = await loadLog(e);
    // Drawing a step writes the address, so nothing is drawn if the reader has left meanwhile.
    if (location.hash !== address || viewer.episode !== e || viewer.reading !== reading) return;
    if (!log.steps.length) throw new Error("This episode ended before its first step.");
    viewer.log = log;
    viewer.step = Math.min(Math.max(1, number || 1), log.steps.length);
    if (reading) drawTranscript();
    else drawStep();
  } catch (problem) {
    byId("steps-of").replaceChildren(el("p", { class: "notice" }, problem.message));
  }
}

function neighbour(by) {
  const next = data.episodes[data.episodes.indexOf(viewer.episode) + by];
  if (!next) return;
  location.hash = viewer.reading ? transcriptLink(next) : episodeLink(next);
}

// Switches between transcript and step view, at the same step.
function switchReading() {
  if (!viewer.log) return;
  const link = viewer.reading ? episodeLink : transcriptLink;
  location.hash = link(viewer.episode, viewer.step);
}

function turn(e, step, number) {
  const vetoes = (step.decisions || []).filter((d) => d.reason).map((d) =>
    `${d.verdict}: ${d.proposal || "(no action)"}`
    + `${d.rule ? ` [${d.rule}]` : ""} ${d.reason}`);
  const broken = brokenRules(step).map((id) => `breaks ${id}: ${data.rules[id] || ""}`);
  const notes = [...vetoes, ...broken, ...(step.belief_errors || []).map((line) => `belief error: ${line}`)];
  return el("li", { id: `turn-${number}`, class: "turn" },
    el("a", { href: episodeLink(e, number) }, `Step ${number}`),
    el("div", null,
      step.thought ? el("p", { class: "text thought" }, step.thought) : null,
      notes.map((note) => el("p", { class: "text note" }, note)),
      el("p", { class: "text action" }, step.action || "(no readable action)"),
      el("p", { class: `text${step.failed ? " failed-text" : ""}` },
        step.failed ? [el("span", { class: "badge bad" }, "rejected"), " "] : null,
        step.result || (step.reply ? "(empty)" : "The episode was interrupted here."))));
}

function drawTranscript() {
  const { log, episode } = viewer;
  byId("steps-of").replaceChildren(el("div", { class: "panel transcript" },
    el("p", { class: "text" }, log.steps[0].observation),
    el("ol", { class: "plain" }, log.steps.map((step, i) => turn(episode, step, i + 1))),
    el("p", null, outcomeBadge(episode))));
  markTurn(false);
}

// The current step has the focus, so Enter opens it.
function markTurn(moved) {
  const link = byId(`turn-${viewer.step}`).querySelector("a");
  history.replaceState(null, "", transcriptLink(viewer.episode, viewer.step));
  if (moved || viewer.step > 1) link.focus();
}
