async function unpackLog(e) {
  const holder = byId(e.log);
  if (!holder) throw new Error("The step log of this episode is missing or damaged.");
  return unpack(holder);
}

// The last few logs stay unpacked.
const decoded = new Map();

async function loadLog(e) {
  if (decoded.has(e.log)) return decoded.get(e.log);
  const log = await unpackLog(e);
  if (decoded.size >= 8) decoded.delete(decoded.keys().next().value);
  decoded.set(e.log, log);
  return log;
}

// The panels of one step, for the step view and for the side-by-side view.
const panel = (title, ...content) => el("section", { class: "panel" },
  el("h2", { class: "label" }, title), content);

// Panels stay open or closed from step to step.
const openPanels = new Map([["reply", true]]);

// The content of a panel is made when it is opened.
function fold(key, title, content) {
  const node = el("details", { "data-panel": key, open: openPanels.get(key) },
    el("summary", null, title));
  const fill = () => {
    if (node.open && node.childElementCount === 1) node.append(...[content()].flat(Infinity));
  };
  // The toggle event comes after the click; the next step may be drawn in between.
  node.firstElementChild.addEventListener("click", () => openPanels.set(key, !node.open));
  node.addEventListener("toggle", () => { openPanels.set(key, node.open); fill(); });
  fill();
  return node;
}

const contentOf = (log, index) => String(log.messages[index] ?? "");

function copyButton(title, text) {
  const outcome = el("span", { role: "status", class: "muted" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      outcome.textContent = " copied";
    } catch {
      outcome.textContent = " the browser does not allow copying";
    }
  };
  return [el("button", { type: "button", onclick: copy }, title), outcome];
}

const promptOf = (step, log) => (step.prompt || [])
  .map(([role, index]) => ({ role, content: contentOf(log, index) }));

// A step of the log, with the texts of the prompt instead of their numbers.
function rawPanel(e, step, log) {
  const prompt = promptOf(step, log);
  const text = JSON.stringify({ condition: e.c, task: e.task, ...step, prompt }, null, 2);
  return panel("Step as JSON", copyButton("Copy step as JSON", text),
    fold("raw", "Raw JSON", () => el("pre", { class: "raw" }, text)));
}

const plain = (text, kind) => el("p", { class: `text ${kind || ""}` }, text);

function words(value) {
  if (value === null || value === undefined || value === "") return "nothing";
  if (Array.isArray(value)) return value.join(", ") || "nothing";
  if (typeof value === "object") {
    return Object.entries(value).map(([k, v]) => `${k}: ${words(v)}`).join("; ") || "nothing";
  }
  return String(value);
}

const ruleId = (id) => (id ? el("span", { class: "rule-id", title: data.rules[id] || "" }, id) : null);

// The guard's verdict on a proposed action.
function guardLine(decision) {
  const kind = { accepted: "good", overridden: "bad" }[decision.verdict] || "warn";
  return el("li", null,
    el("div", { class: "outcome" },
      el("span", { class: `badge ${kind}` }, decision.verdict),
      el("span", null, decision.proposal || "(no readable action)")),
    decision.reason ? el("div", { class: "why" }, ruleId(decision.rule),
      decision.reason + (decision.repair ? `; ${decision.repair}` : "")) : null);
}

const brokenRules = (step) => (step.judged || []).filter(([, verdict]) => verdict === "broken")
  .map(([id]) => id);

// The rules that the model's proposal broke; the manual judges it in every condition.
function brokenLines(step) {
  const what = step.proposal && step.proposal !== step.action ? `The proposal "${step.proposal}" breaks`
    : "Breaks";
  return brokenRules(step).map((id) => el("p", { class: "broken" },
    el("span", { class: "badge warn" }, what), " ", el("span", { class: "rule-id" }, id),
    data.rules[id] || "(not in the current manual)"));
}

function decisionPanel(step) {
  const decisions = step.decisions || [];
  const offered = step.shortlist || [];
  return panel("Decision",
    step.thought ? plain(step.thought) : null,
    decisions.length ? el("ul", { class: "plain" }, decisions.map(guardLine)) : null,
    offered.length ? fold("offered", `${offered.length} applicable actions offered`, () =>
      el("ol", null, offered.map((choice) => el("li", null, choice.action,
        el("span", { class: "muted" }, ` ${choice.reason}`))))) : null,
    step.action ? el("p", { class: "action" }, step.action)
      : el("p", { class: "failed-text" }, !step.reply ? "The model gave no reply."
        : "The reply has no readable action."),
    brokenLines(step));
}

function resultPanel(step) {
  return panel("Result",
    plain(step.result || (step.reply ? "(empty)" : "The episode was interrupted here."),
      step.failed ? "failed-text" : ""),
    step.failed ? el("p", null, el("span", { class: "badge bad" }, "rejected")) : null);
}

const pairsTable = (pairs) => el("table", { class: "pairs" }, el("tbody", null,
  pairs.map(([name, value]) => el("tr", null,
    el("th", { scope: "row" }, name.replaceAll("_", " ")), el("td", null, words(value))))));

function truthPanel(step) {
  const truth = Object.entries(step.truth || {});
  return panel("True state", truth.length ? pairsTable(truth)
    : el("p", { class: "muted" }, "The true state was not recorded."));
}

function beliefErrorNote(step) {
  if (!(step.belief_errors || []).length) return null;
  return el("div", { class: "belief-error", role: "note" }, el("strong", null, "Belief error"),
    el("ul", null, step.belief_errors.map((line) => el("li", null, line))));
}

function beliefPanel(step) {
  const goal = step.sub_goal || {};
  const facts = Object.entries(step.belief || {}).filter(([, v]) => words(v) !== "nothing");
  const lines = (step.state_lines || []).map((line) => el("li", null, line));
  return panel("Belief",
    beliefErrorNote(step),
    goal.name ? el("p", null, el("span", { class: "badge" }, `${goal.progress}%`), " ",
      `${goal.name.replaceAll("_", " ")} ${goal.target || ""}`) : null,
    lines.length ? el("ul", { class: "plain" }, lines) : null,
    fold("belief", "Full belief", () => pairsTable(facts)));
}

const ruleLine = (id, text) => el("li", null, el("span", { class: "rule-id" }, id),
  text || data.rules[id] || "(not in the current manual)");

function rulesPanel(step) {
  const titles = { universal: "Universal", domain: "For this goal", environment: "Environment" };
  const rules = step.rules || {};
  const tiers = Object.keys(rules).filter((key) => key !== "situation")
    .map((key) => [titles[key] || key, key]);
  const situation = (rules.situation || []).map((rule) => ruleLine(rule.id, rule.text));
  const total = tiers.reduce((n, [, key]) => n + (rules[key] || []).length, situation.length);
  if (!total) return panel("Rules", el("p", { class: "muted" }, "No rules in this condition."));
  return panel(`Rules (${total})`,
    situation.length
      ? el("ul", { class: "plain", "aria-label": "For this situation" }, situation) : null,
    tiers.filter(([, key]) => (rules[key] || []).length).map(([title, key]) =>
      fold(`rules-${key}`, `${title} (${rules[key].length})`, () =>
        el("ul", { class: "plain" }, rules[key].map((id) => ruleLine(id))))));
}

function advice(recall) {
  const { actions = [], printed = actions, places = [], needs = [], then = [] } = recall.advice || {};
  const what = printed.join(" \u2192 ") || places.join("; ");
  const why = [...needs, ...then.map((text) => `then ${text}`)];
  return why.length ? `${what}: ${why.join("; ")}` : what;
}

function memoryLine(recall) {
  const [kind, outcome, why] = recall.dropped_by ? ["bad", recall.dropped_by, recall.reason]
    : recall.warning ? ["warn", "warned", recall.warning] : ["good", "shown", ""];
  return el("li", { class: recall.dropped_by ? "dropped" : null },
    el("div", { class: "outcome" }, el("span", { class: `badge ${kind}` }, outcome),
      el("span", { class: "muted" }, `${recall.entry.type} ${Number(recall.score).toFixed(2)}`)),
    el("div", { class: "advice" }, advice(recall)),
    why || recall.rule ? el("div", { class: "why" }, ruleId(recall.rule), why) : null);
}

// These outcomes are listed first; memories with other outcomes are many and much alike.
const JUDGED = ["", "scf", "arbitration", "over token budget"];

function memoryPanel(step) {
  const recalls = step.recalls || [];
  if (!recalls.length) return panel("Memories", el("p", { class: "muted" }, "No candidates."));
  const judged = recalls.filter((r) => JUDGED.includes(r.dropped_by));
  const rest = recalls.filter((r) => !JUDGED.includes(r.dropped_by));
  const counts = new Map(Object.entries(step.truncated || {}));
  for (const r of rest) counts.set(r.dropped_by, (counts.get(r.dropped_by) || 0) + 1);
  const others = [...counts].map(([outcome, n]) => `${n} ${outcome}`).join(", ");
  const total = judged.length + [...counts.values()].reduce((sum, n) => sum + n, 0);
  const shown = judged.filter((r) => !r.dropped_by).length;
  return panel(`Memories (${total} candidates, ${shown} shown)`,
    el("ul", { class: "plain" }, judged.map(memoryLine)),
    rest.length ? fold("memories", others, () => el("ul", { class: "plain" }, rest.map(memoryLine)))
      : others ? el("p", { class: "muted" }, others) : null);
}

// The prompt as the model read it: its blocks in colours, new lines marked.

// A block begins with a heading in brackets; its words give the kind of block in any environment.
const BLOCK_KINDS = Object.entries({
  memory: /experience|memor/i, actions: /action/i, rules: /rule/i, goal: /goal|objective/i,
  state: /state/i,
});
const KIND_NAMES = {
  ...Object.fromEntries(BLOCK_KINDS.map(([kind]) => [kind, kind])), system: "instruction",
  example: "example", other: "other block", task: "task and history",
};

function blockKind(paragraph) {
  const heading = /^\[([^\]\n]+)\]/.exec(paragraph);
  return heading && (BLOCK_KINDS.find(([, words]) => words.test(heading[1])) || ["other"])[0];
}

const promptLines = (step, log) => promptOf(step, log)
  .flatMap(({ content }) => content.split("\n")).filter((line) => line.trim());

function promptBlock(paragraph, kind, isNew) {
  return el("span", { class: `block b-${kind}` }, paragraph.split("\n").flatMap((line, i) =>
    [i ? "\n" : "", line.trim() && isNew(line) ? el("ins", null, line) : line]));
}

// Everything before the line that ends the examples is an example.
function promptMessages(step, log, isNew) {
  const parts = promptOf(step, log);
  const ending = parts.findLastIndex(({ content }) => content.includes(data.new_task));
  return parts.map(({ role, content }, number) => {
    let example = number <= ending;
    const blocks = content.split("\n\n").map((paragraph) => {
      const kind = role === "system" ? "system" : example ? "example" : "task";
      if (number === ending && paragraph.includes(data.new_task)) example = false;
      return promptBlock(paragraph, (kind === "task" && blockKind(paragraph)) || kind, isNew);
    });
    return el("div", { class: `message ${role}` }, el("div", { class: "role" }, role),
      el("pre", null, blocks));
  });
}

function promptLegend(messages) {
  const kinds = Object.entries(KIND_NAMES).filter(([kind]) =>
    messages.some((message) => message.querySelector(`.block.b-${kind}`)));
  return el("ul", { class: "legend", "aria-label": "Colours" }, kinds.map(([kind, name]) =>
    el("li", { class: `block b-${kind}` }, name)));
}

// Lines are compared without their position: a block that only moved has not changed.
function promptBody(step, log) {
  const before = log.steps[log.steps.indexOf(step) - 1];
  const counts = new Map();
  for (const line of before ? promptLines(before, log) : []) {
    counts.set(line, (counts.get(line) || 0) + 1);
  }
  const isNew = (line) => {
    const count = counts.get(line) || 0;
    counts.set(line, count - 1);
    return before && count <= 0;
  };
  const messages = promptMessages(step, log, isNew);
  const text = promptOf(step, log).map(({ role, content }) => `${role}:\n${content}`).join("\n\n");
  return [
    promptLegend(messages), copyButton("Copy prompt", text),
    el("p", { class: "muted" }, before ? ["Lines that are new since the previous step are ",
      el("ins", null, "marked"), "."]
      : "This is the first prompt of the episode."),
    el("div", { class: "prompt-text" }, messages),
  ];
}

function promptPanel(step, log) {
  const usage = step.usage || {};
  const tokens = `${usage.prompt_tokens ?? "?"} prompt tokens, ${usage.cached_tokens ?? 0} cached, `
    + `${usage.output_tokens ?? "?"} out; ${step.knowledge_tokens ?? 0} of knowledge`;
  return panel("Prompt and reply",
    el("p", { class: "muted" }, tokens),
    fold("prompt", `Prompt (${(step.prompt || []).length} messages)`, () => promptBody(step, log)),
    fold("reply", "Reply", () => el("pre", { class: "reply" }, step.reply || "(empty)")));
}
