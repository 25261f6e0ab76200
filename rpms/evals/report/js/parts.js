// The parts of one step, as panels; used by the episode and by the side-by-side view.
const plain = (text, kind) => el("p", { class: `text ${kind || ""}` }, text);

function words(value) {
  if (value === null || value === undefined || value === "") return "nothing";
  if (Array.isArray(value)) return value.join(", ") || "nothing";
  if (typeof value === "object") {
    return Object.entries(value).map(([k, v]) => `${k}: ${words(v)}`).join("; ") || "nothing";
  }
  return String(value);
}

function observationPanel(step) {
  return panel("Observation", plain(step.observation));
}

// What rules made of a proposed action, where the run has a guard.
function guardLine(decision) {
  const kind = { accepted: "good", replaced: "warn", fell_back: "warn", asked_again: "warn",
    insisted: "bad" };
  const rule = decision.rule ? el("span", { class: "rule-id",
    title: data.rules[decision.rule] || "" }, decision.rule) : null;
  return el("li", null,
    el("div", { class: "fate" },
      el("span", { class: `badge ${kind[decision.verdict] || ""}` },
        decision.verdict.replace("_", " ")),
      el("span", null, decision.proposal || "(no action could be read)")),
    decision.reason ? el("div", { class: "why" }, rule,
      decision.reason + (decision.mend ? `; ${decision.mend}` : "")) : null);
}

function decisionPanel(step) {
  const decisions = step.decisions || [];
  const offered = step.shortlist || [];
  return panel("Decision",
    step.thought ? plain(step.thought) : null,
    decisions.length ? el("ul", { class: "plain" }, decisions.map(guardLine)) : null,
    offered.length ? fold("offered", `${offered.length} actions were offered`, () =>
      el("ol", null, offered.map((choice) => el("li", null, choice.action,
        el("span", { class: "muted" }, ` ${choice.reason}`))))) : null,
    step.action ? el("p", { class: "action" }, step.action)
      : el("p", { class: "failed-text" }, !step.reply ? "The model gave no reply."
        : "No action could be read from the reply."));
}

function resultPanel(step) {
  return panel("What came of it",
    plain(step.result || (step.reply ? "(nothing)" : "The episode broke off here."), step.failed ? "failed-text" : ""),
    step.failed ? el("p", null, el("span", { class: "badge bad" }, "refused")) : null);
}

// What the belief says about a line of the true state.
function believedAs(name, belief) {
  if (name === "location" && !belief.location) return "middle of the room";
  if (name !== "open") return words(belief[name]);
  const open = Object.entries(belief.containers || {}).filter(([, door]) => door === "open");
  return words(open.map(([place]) => place).sort());
}

const driftsIn = (name, drift) => drift.some((line) => line.startsWith(`${name}:`)
  || (name === "open" && /: believed (open|closed)/.test(line)));

function truthTable(step) {
  const rows = Object.entries(step.truth || {}).map(([name, truth]) => {
    const believed = believedAs(name, step.belief || {});
    return el("tr", { class: driftsIn(name, step.drift || []) ? "differs" : null },
      el("th", { scope: "row" }, name), el("td", null, believed), el("td", null, words(truth)));
  });
  if (!rows.length) return el("p", { class: "muted" }, "The true state was not recorded.");
  return el("table", { class: "pairs" },
    el("thead", null, el("tr", null, el("td"), ["believed", "true"].map((t) =>
      el("th", { scope: "col" }, t)))),
    el("tbody", null, rows));
}

function driftNote(step) {
  if (!(step.drift || []).length) return null;
  return el("div", { class: "drift", role: "note" }, el("strong", null, "Belief drifted"),
    el("ul", null, step.drift.map((line) => el("li", null, line))));
}

function beliefPanel(step) {
  const goal = step.sub_goal || {};
  const known = Object.entries(step.belief || {}).filter(([, v]) => words(v) !== "nothing");
  const lines = (step.state_lines || []).map((line) => el("li", null, line));
  return panel("What the agent believed",
    driftNote(step),
    goal.name ? el("p", null, el("span", { class: "badge" }, `${goal.progress}%`), " ",
      `${goal.name.replaceAll("_", " ")} ${goal.target || ""}`) : null,
    lines.length ? el("ul", { class: "plain" }, lines) : null,
    fold("belief", "Whole belief", () => el("table", { class: "pairs" }, el("tbody", null,
      known.map(([name, value]) => el("tr", null,
        el("th", { scope: "row" }, name.replaceAll("_", " ")), el("td", null, words(value))))))));
}

const truthPanel = (step) => panel("Belief and truth", truthTable(step));

const ruleLine = (id, text) => el("li", null, el("span", { class: "rule-id" }, id),
  text || data.rules[id] || "(not in the manual that made this page)");

function rulesPanel(step) {
  const titles = { universal: "Universal", domain: "For this goal", environment: "Environment" };
  const rules = step.rules || {};
  const tiers = Object.keys(rules).filter((key) => key !== "situation")
    .map((key) => [titles[key] || key, key]);
  const now = (rules.situation || []).map((rule) => ruleLine(rule.id, rule.text));
  const total = tiers.reduce((n, [, key]) => n + (rules[key] || []).length, now.length);
  if (!total) return panel("Rules", el("p", { class: "muted" }, "No rules in this condition."));
  return panel(`Rules (${total})`,
    now.length ? el("ul", { class: "plain", "aria-label": "For this situation" }, now) : null,
    tiers.filter(([, key]) => (rules[key] || []).length).map(([title, key]) =>
      fold(`rules-${key}`, `${title} (${rules[key].length})`, () =>
        el("ul", { class: "plain" }, rules[key].map((id) => ruleLine(id))))));
}

function advice(recall) {
  const said = recall.advice || {};
  const what = (said.actions || []).join(" \u2192 ") || (said.places || []).join("; ");
  const why = [...(said.needs || []), ...(said.then || []).map((text) => `then ${text}`)];
  return why.length ? `${what}: ${why.join("; ")}` : what;
}

function memoryLine(recall) {
  const fate = recall.dropped_by
    ? [el("span", { class: "badge bad" }, `dropped: ${recall.dropped_by}`), recall.reason]
    : recall.warning
      ? [el("span", { class: "badge warn" }, "warned"), recall.warning]
      : [el("span", { class: "badge good" }, "used"), ""];
  const rule = recall.rule ? el("span", { class: "rule-id", title: data.rules[recall.rule] || "" },
    recall.rule) : null;
  return el("li", { class: recall.dropped_by ? "dropped" : null },
    el("div", { class: "fate" }, fate[0],
      el("span", { class: "muted" }, `${recall.entry.type} ${Number(recall.score).toFixed(2)}`)),
    el("div", { class: "advice" }, advice(recall)),
    fate[1] || rule ? el("div", { class: "why" }, rule, fate[1]) : null);
}

function memoryPanel(step) {
  const recalls = step.recalls || [];
  if (!recalls.length) return panel("Memories", el("p", { class: "muted" }, "None recalled."));
  const dropped = recalls.filter((r) => r.dropped_by).length;
  return panel(`Memories (${recalls.length} recalled, ${dropped} dropped)`,
    el("ul", { class: "plain" }, recalls.map(memoryLine)));
}
