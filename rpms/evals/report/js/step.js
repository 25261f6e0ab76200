// One step as panels, for the episode and for the side-by-side view.

// Panels that stay as the reader left them from step to step, and text to take away.
const panel = (title, ...content) => el("section", { class: "panel" },
  el("h2", { class: "label" }, title), content);

const openPanels = new Map([["reply", true]]);

// What a closed panel holds is not made before it is opened.
function fold(key, title, content) {
  const node = el("details", { "data-panel": key, open: openPanels.get(key) },
    el("summary", null, title));
  let filled = false;
  const fill = () => {
    if (filled || !node.open) return;
    filled = true;
    node.append(...[content()].flat(Infinity).filter((part) => part !== null && part !== ""));
  };
  node.addEventListener("toggle", () => { openPanels.set(key, node.open); fill(); });
  fill();
  return node;
}

// Where the browser lets nothing be copied, `otherwise` is called.
function copyButton(title, read, otherwise) {
  const told = el("span", { role: "status", class: "muted" });
  const button = el("button", { type: "button", onclick: async () => {
    try {
      await navigator.clipboard.writeText(read());
      told.textContent = " copied";
    } catch {
      if (otherwise) otherwise();
      told.textContent = otherwise ? " selected: press Ctrl+C" : " not allowed here";
    }
  } }, title);
  return el("span", { class: "copy" }, button, told);
}

// A step as it lies in the log, with the texts that the log keeps in a table put back.
function rawStep(e, step, log) {
  const prompt = (step.prompt || []).map(([role, index]) => ({ role, content: log.messages[index] }));
  return JSON.stringify({ condition: e.c, task: e.task, ...step, prompt }, null, 2);
}

function rawPanel(e, step, log) {
  const text = () => rawStep(e, step, log);
  const raw = fold("raw", "Raw JSON", () => el("pre", { class: "raw" }, text()));
  const select = () => {
    raw.open = true;
    setTimeout(() => getSelection().selectAllChildren(raw.querySelector("pre")));
  };
  return panel("This step as data", copyButton("Copy step as JSON", text, select), raw);
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

// The prompt as the model read it: one text, its blocks in colours, what is new marked.

// A block opens with a heading in brackets; its words tell what it holds, whatever the world.
const BLOCK_KINDS = [
  ["memory", "memory", /experience|memor/i], ["actions", "actions", /action/i],
  ["rules", "rules", /rule/i], ["goal", "goal", /goal|objective/i], ["state", "state", /state/i],
];
const PLAIN_KINDS = { system: "instruction", example: "example", other: "other block",
  task: "task and history" };

function blockKind(paragraph) {
  const heading = /^\[([^\]\n]+)\]/.exec(paragraph);
  if (!heading) return "";
  const known = BLOCK_KINDS.find(([, , words]) => words.test(heading[1]));
  return known ? known[0] : "other";
}

const contentOf = (log, index) => String(log.messages[index] ?? "");
const promptLines = (step, log) => (step.prompt || [])
  .flatMap(([, index]) => contentOf(log, index).split("\n")).filter((line) => line.trim());

// Lines are compared wherever they stand: a block that only moved has not changed.
function lineCounts(lines) {
  const counts = new Map();
  for (const line of lines) counts.set(line, (counts.get(line) || 0) + 1);
  return counts;
}

function promptBlock(paragraph, kind, isNew) {
  let fresh = false;
  const lines = paragraph.split("\n").flatMap((line, i) => {
    const marked = line.trim() && isNew(line);
    fresh = fresh || marked;
    return [i ? "\n" : "", marked ? el("ins", null, line) : line];
  });
  return el("span", { class: `block b-${kind}${fresh ? "" : " same"}` }, lines);
}

// Up to the line that ends the examples everything is an example.
function promptMessages(step, log, isNew) {
  const parts = (step.prompt || []).map(([role, index]) => [role, contentOf(log, index)]);
  const ending = parts.findLastIndex(([, text]) => text.includes(data.new_task));
  return parts.map(([role, text], number) => {
    let example = number <= ending;
    const blocks = text.split("\n\n").map((paragraph) => {
      const plain = role === "system" ? "system" : example ? "example" : "task";
      if (number === ending && paragraph.includes(data.new_task)) example = false;
      return promptBlock(paragraph, (plain === "task" && blockKind(paragraph)) || plain, isNew);
    });
    const same = blocks.every((block) => block.classList.contains("same"));
    return el("div", { class: `message ${role}${same ? " same" : ""}` },
      el("div", { class: "role" }, role), el("pre", null, blocks));
  });
}

function promptLegend(messages) {
  const names = new Map([...BLOCK_KINDS.map(([kind, name]) => [kind, name]),
    ...Object.entries(PLAIN_KINDS)]);
  const there = [...names].filter(([kind]) =>
    messages.some((message) => message.querySelector(`.block.b-${kind}`)));
  return el("ul", { class: "legend", "aria-label": "Colours" }, there.map(([kind, name]) =>
    el("li", { class: `block b-${kind}` }, name)));
}

function promptBody(step, log) {
  const before = log.steps[log.steps.indexOf(step) - 1];
  const left = before && before.prompt ? lineCounts(promptLines(before, log)) : null;
  const isNew = (line) => {
    if (!left) return false;
    const count = left.get(line) || 0;
    left.set(line, count - 1);
    return count <= 0;
  };
  const messages = promptMessages(step, log, isNew);
  const gone = left ? [...left].filter(([, count]) => count > 0).map(([line]) => line) : [];
  const whole = el("div", { class: `prompt-text${viewer.onlyNew && left ? " only-new" : ""}` },
    messages);
  const choice = el("input", { type: "checkbox", checked: viewer.onlyNew, id: "only-new" });
  choice.addEventListener("change", () => {
    viewer.onlyNew = choice.checked;
    whole.classList.toggle("only-new", choice.checked);
  });
  const text = (step.prompt || []).map(([role, index]) => `${role}:\n${contentOf(log, index)}`);
  return [
    el("div", { class: "prompt-tools" }, promptLegend(messages), copyButton("Copy prompt",
      () => text.join("\n\n"))),
    left ? el("p", null, el("label", null, choice, " Only what is new since the last step"),
      el("span", { class: "muted" }, " (new lines are ", el("ins", null, "marked"), ")"))
      : el("p", { class: "muted" }, "The first prompt of the episode: there is none to compare with."),
    whole,
    gone.length ? fold("gone", `${gone.length} ${gone.length === 1 ? "line" : "lines"} of the last `
      + "prompt no longer there", () => el("pre", { class: "gone" }, gone.map((line) =>
      [el("del", null, line), "\n"]))) : null,
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
