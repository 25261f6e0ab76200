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
