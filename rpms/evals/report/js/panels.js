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

// Pages from disk, from plain http and without permission have no clipboard; the old way works there.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* not allowed, or not there */ }
  const area = el("textarea", { class: "aside", readonly: true, "aria-label": "Text to copy" });
  area.value = text;
  const held = document.activeElement;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (held) held.focus({ preventScroll: true });
  return done;
}

// `otherwise` is called where the browser lets nothing be copied.
function copyButton(title, read, otherwise) {
  const told = el("span", { role: "status", class: "muted" });
  const button = el("button", { type: "button", onclick: async () => {
    const done = await copyText(read());
    if (!done && otherwise) otherwise();
    told.textContent = done ? " copied" : otherwise ? " selected: press Ctrl+C" : " not allowed here";
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
