// The whole episode as one text to read from top to bottom.
const transcriptLink = (e, step) => `#/transcript/${encode(e.c)}/${encode(e.task)}/${step || 1}`;

function turnNotes(step) {
  const vetoed = (step.decisions || []).filter((d) => d.reason).map((d) =>
    `${d.verdict.replace("_", " ")}: ${d.proposal || "(no action)"}`
    + `${d.rule ? ` [${d.rule}]` : ""} ${d.reason}`);
  return [...vetoed, ...(step.drift || []).map((line) => `belief drifted: ${line}`)];
}

function turn(e, step, number) {
  const notes = turnNotes(step);
  return el("li", { id: `turn-${number}`, class: "turn" },
    el("a", { href: episodeLink(e, number), class: "turn-link" }, `Step ${number}`),
    el("div", null,
      step.thought ? el("p", { class: "text thought" }, step.thought) : null,
      notes.map((note) => el("p", { class: "text note" }, note)),
      el("p", { class: "text action" }, step.action || "(no action could be read)"),
      el("p", { class: `text${step.failed ? " failed-text" : ""}` },
        step.failed ? [el("span", { class: "badge bad" }, "refused"), " "] : null,
        step.result || (step.reply ? "(nothing)" : "The episode broke off here."))));
}

function transcriptText(e, log) {
  const lines = [`${titleOf(e)} (${e.c}, ${e.task})`, "", log.steps[0].observation];
  log.steps.forEach((step, i) => {
    lines.push("", `Step ${i + 1}`);
    if (step.thought) lines.push(`Thought: ${step.thought}`);
    lines.push(...turnNotes(step).map((note) => `(${note})`), `Action: ${step.action || "(none)"}`,
      `${step.failed ? "(refused) " : ""}${step.result || ""}`);
  });
  lines.push("", `Outcome: ${e.won ? "won" : (e.mode || "lost").replaceAll("_", " ")}`);
  if (e.error) lines.push(e.error);
  return lines.join("\n");
}

function drawTranscript() {
  const { log, episode } = viewer;
  byId("steps-of").replaceChildren(
    el("div", { class: "panel transcript" },
      copyButton("Copy transcript", () => transcriptText(episode, log)),
      el("p", { class: "text" }, log.steps[0].observation),
      el("ol", { class: "plain" }, log.steps.map((step, i) => turn(episode, step, i + 1))),
      el("p", null, outcomeBadge(episode))));
  markFound(byId("steps-of"));
  markTurn(false);
}

// The focus is on the step one is at, so Enter opens it.
function markTurn(seen) {
  const link = byId(`turn-${viewer.step}`).querySelector("a");
  history.replaceState(null, "", transcriptLink(viewer.episode, viewer.step));
  if (seen || viewer.step > 1) link.focus();
}
