// What is looked for in the steps: a text, a rule, what became of memories and of proposed actions.
// A step fits when all that is asked for holds in that one step.

const STEP_FIELDS = ["x", "r", "m", "g"];
const VETOES = ["vetoed", "asked_again", "replaced", "fell_back", "insisted"];
const asksForSteps = (params) => STEP_FIELDS.some((name) => (params.get(name) || "").trim());

// What each step said and did. An observation that is the result of the step before is not
// repeated, so that "Nothing happens" is found where it happened and not once more after it.
function saidIn(step, before) {
  const vetoes = (step.decisions || []).filter((d) => d.reason)
    .map((d) => `${d.proposal}: ${d.reason}`);
  return [
    ["observation", before && before.result === step.observation ? "" : step.observation],
    ["thought", step.thought],
    ["action", step.action],
    ["reply", step.action ? "" : step.reply],
    ["veto", vetoes.join("; ")],
    ["result", step.result],
    ["drift", (step.drift || []).join("; ")],
  ].filter(([, text]) => text).map(([where, text]) => [where, String(text)]);
}

// Of a log, only what a search asks about: a few kilobytes where the log has hundreds.
function digest(log) {
  return log.steps.map((step, i) => ({
    said: saidIn(step, log.steps[i - 1]),
    failed: step.failed,
    action: step.action,
    situation: ((step.rules || {}).situation || []).map((rule) => rule.id),
    judged: step.judged || [],
    recalls: (step.recalls || []).map((r) => ({
      fate: r.dropped_by || (r.warning ? "warned" : "used"), rule: r.rule || "",
      why: r.reason || r.warning || advice(r),
    })),
    decisions: (step.decisions || []).map((d) => ({
      verdict: d.verdict, vetoed: Boolean(d.reason), rule: d.rule || (d.reason ? "procedure" : ""),
    })),
  }));
}

const ruleTest = (wanted) => {
  const start = wanted.trim().toLowerCase();
  return (id) => !start || id.toLowerCase().startsWith(start);
};

function spoke(step, fits) {
  return [...step.situation, ...step.judged.map(([id]) => id), ...step.recalls.map((r) => r.rule),
    ...step.decisions.map((d) => d.rule)].filter(Boolean).some(fits);
}

// What became of a memory; the names are those of the step log.
function memoryOf(step, wanted, fits) {
  return step.recalls.find((r) => fits(r.rule) && (wanted === "shown"
    ? r.fate === "used" || r.fate === "warned"
    : wanted === "dropped" ? r.fate !== "used" && r.fate !== "warned" : r.fate === wanted));
}

function actionFits(step, wanted, fits) {
  if (wanted === "refused") return step.failed;
  if (wanted === "unread") return !step.action;
  if (wanted === "broken") {
    return step.judged.some(([id, verdict]) => verdict === "broken" && fits(id));
  }
  return step.decisions.some((d) => fits(d.rule)
    && (wanted === "vetoed" ? d.vetoed : d.verdict === wanted));
}

// A phrase as a pattern: letters of either case, any white space between its words.
function phrase(text) {
  const parts = text.trim().split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(parts.join("\\s+"), "iu");
}

// The words around a find, so that one can tell whether to open the step.
const AROUND = 60;
function excerpt(where, text, index, length) {
  const start = Math.max(0, index - AROUND);
  const end = index + length;
  return {
    where,
    before: start ? text.slice(start, index).replace(/^\S*/, "\u2026") : text.slice(0, index),
    found: text.slice(index, end),
    after: end + AROUND < text.length
      ? text.slice(end, end + AROUND).replace(/\S*$/, "\u2026") : text.slice(end),
  };
}

function textHit(step, pattern) {
  for (const [where, text] of step.said) {
    const match = pattern.exec(text);
    if (match) return excerpt(where, text, match.index, match[0].length);
  }
  return null;
}

// Without a text to mark, a find shows the memory or the veto that was asked for, or the action.
function plainHit(step, memory, veto) {
  const told = veto && step.said.find(([where]) => where === "veto");
  const dropped = memory && !["used", "warned"].includes(memory.fate);
  const [where, text] = memory ? [`memory ${dropped ? "dropped: " : ""}${memory.fate}`, memory.why]
    : told || ["action", step.action || "(no action could be read)"];
  return { where, before: text.slice(0, 3 * AROUND), found: "", after: "" };
}

// The steps of an episode that fit, each with the words to show for it.
function fittingSteps(steps, params) {
  const text = (params.get("x") || "").trim();
  const pattern = text && phrase(text);
  const fits = ruleTest(params.get("r") || "");
  const [memory, action] = [params.get("m"), params.get("g")];
  const always = () => true;
  const hits = [];
  steps.forEach((step, i) => {
    if (params.get("r") && !spoke(step, fits)) return;
    const recalled = memory && memoryOf(step, memory, action ? always : fits);
    if (memory && !recalled) return;
    if (action && !actionFits(step, action, fits)) return;
    const hit = pattern ? textHit(step, pattern)
      : plainHit(step, recalled, VETOES.includes(action));
    if (hit) hits.push({ step: i + 1, ...hit });
  });
  return hits;
}

// An error ends an episode between its steps; it is shown with the last one.
function errorHit(e, params) {
  const text = (params.get("x") || "").trim();
  if (!e.error || !text || STEP_FIELDS.some((name) => name !== "x" && params.get(name))) return [];
  const match = phrase(text).exec(e.error);
  return match ? [{ step: Math.max(1, e.steps),
    ...excerpt("error", e.error, match.index, match[0].length) }] : [];
}

// Episodes whose line already says that no step can fit need not be unpacked.
const mayFit = (e, params) => !(params.get("m") && !e.recalled)
  && !(VETOES.includes(params.get("g")) && !e.proposals);

// Searching the logs without holding up the page: one after the other, in slices of a few
// milliseconds, and a newer search ends an older one. Nothing is unpacked before it is asked for.

const search = { turn: 0, kept: new Map(), letters: 0 };
const SLICE_MS = 16;
const AHEAD = 4;
// What digests may take together; logs beyond that are unpacked again by the next search.
const KEPT_LETTERS = 60e6;

async function digestOf(e) {
  if (search.kept.has(e)) return search.kept.get(e);
  let steps;
  try {
    steps = digest(await unpackLog(e));
  } catch {
    return null;
  }
  const size = steps.reduce((n, step) => n + step.said.reduce((m, [, t]) => m + t.length, 100), 0);
  if (search.letters + size < KEPT_LETTERS) {
    search.letters += size;
    search.kept.set(e, steps);
  }
  return steps;
}

function stopSearch() {
  search.turn += 1;
}

// Tells `found(episode, hits)` as it goes and `progress(seen, unread, done)` now and then.
async function searchSteps(episodes, params, found, progress) {
  const turn = search.turn += 1;
  const waiting = [];
  let next = 0;
  let unread = 0;
  let paused = performance.now();
  for (let seen = 0; seen < episodes.length; seen += 1) {
    // The browser unpacks in the background: a few are always on their way.
    while (next < episodes.length && waiting.length < AHEAD) {
      const e = episodes[next];
      waiting.push(mayFit(e, params) ? digestOf(e) : Promise.resolve([]));
      next += 1;
    }
    const steps = await waiting.shift();
    if (turn !== search.turn) return;
    const e = episodes[seen];
    if (!steps) unread += 1;
    const hits = [...(steps ? fittingSteps(steps, params) : []), ...errorHit(e, params)];
    if (hits.length) found(e, hits);
    if (performance.now() - paused > SLICE_MS) {
      progress(seen + 1, unread, false);
      await new Promise((resolve) => { setTimeout(resolve); });
      if (turn !== search.turn) return;
      paused = performance.now();
    }
  }
  progress(episodes.length, unread, true);
}

// In an opened step the words that were searched for are marked, without touching its text.
function markFound(node) {
  if (!CSS.highlights) return;
  const text = (list.params.get("x") || "").trim();
  const ranges = [];
  const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const pattern = text && new RegExp(phrase(text), "giu");
  for (let leaf = pattern && walk.nextNode(); leaf; leaf = walk.nextNode()) {
    for (const match of leaf.data.matchAll(pattern)) {
      const range = document.createRange();
      range.setStart(leaf, match.index);
      range.setEnd(leaf, match.index + match[0].length);
      ranges.push(range);
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}
