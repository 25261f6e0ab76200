// All data is inserted as text: no function here parses markup from a string.
const byId = (id) => document.getElementById(id);

// Data and logs stay compressed in the page until they are read.
async function unpack(holder) {
  const bytes = Uint8Array.from(atob(holder.textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

const data = await unpack(byId("data"));
const conditionNames = new Map(data.conditions);
const typeNames = new Map(data.types);
data.episodes.forEach((episode, number) => {
  episode.number = number;
  episode.log = `log-${number}`;
});
// Episodes are sorted by task, then by the order of the conditions.
const rankOf = new Map(data.conditions.map(([c], rank) => [c, rank]));
data.episodes.sort((a, b) => a.n - b.n || rankOf.get(a.c) - rankOf.get(b.c));

const keyOf = (condition, task) => JSON.stringify([condition, task]);
const episodesByKey = new Map(data.episodes.map((e) => [keyOf(e.c, e.task), e]));

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "onclick") node.addEventListener("click", value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => (child ?? "") !== ""));
  // A badge or a heading that is a term of the glossary explains itself.
  const isTerm = tag === "th" || node.classList.contains("badge");
  const meaning = isTerm && data.glossary[node.textContent.toLowerCase()];
  if (meaning && !node.title) node.title = meaning;
  return node;
}

const encode = encodeURIComponent;
// On the page of the list an episode's steps are on another page, that of its task.
const episodeLink = (e, step) => `${e.page}#/episode/${encode(e.c)}/${encode(e.task)}/${step || 1}`;
const transcriptLink = (e, step) => `${e.page}#/transcript/${encode(e.c)}/${encode(e.task)}/${step || 1}`;
const compareLink = (first, second, task, step) =>
  `#/compare/${encode(first)}/${encode(second)}/${encode(task)}${step ? `/${step}` : ""}`;

// Some environments state a goal in a paragraph; then the task's name is the title.
const LONG = 90;
const titleOf = (e) => (e.goal && e.goal.length <= LONG ? e.goal : e.task);
const goalBelow = (e) => (titleOf(e) === e.goal ? null : e.goal);

const isError = (e) => e.mode === "model_error" || e.mode === "infrastructure_error";

const MODE_NAMES = { wrong_termination: "stopped before the goal" };

function outcomeBadge(e) {
  const outcome = e.won ? "won" : MODE_NAMES[e.mode] || (e.mode || "lost").replaceAll("_", " ");
  return el("span", { class: `badge ${e.won ? "good" : isError(e) ? "warn" : "bad"}` }, outcome);
}

// One line with the cause of a lost episode, linked to the step.
function whyLine(e) {
  if (!e.cause) return null;
  const why = [el("span", { class: "cause" }, e.cause), `: ${e.why}`];
  return el("p", { class: "why" }, e.at ? el("a", { href: episodeLink(e, e.at) }, why) : why);
}

// The keys that move through rows or steps.
const moves = (go, next, previous) => ({
  j: () => go(1), [next]: () => go(1), k: () => go(-1), [previous]: () => go(-1),
  Home: () => go(-1e6), End: () => go(1e6),
});
