// What is looked for in the steps: a text, a rule, what became of memories and of proposed actions.
// A step fits when all that is asked for holds in that one step.
const STEP_FIELDS = ["x", "r", "m", "g"];
const VETOES = ["vetoed", "retried", "replaced", "fallback", "overridden"];
const asksForSteps = (params) => STEP_FIELDS.some((name) => (params.get(name) || "").trim());

// What each step said and did. An observation that is the result of the step before is not
// repeated, so that "Nothing happens" is found where it happened and not once more after it.
function textsOf(step, before) {
  const vetoes = (step.decisions || []).filter((d) => d.reason)
    .map((d) => `${d.proposal}: ${d.reason}`);
  return [
    ["observation", before && before.result === step.observation ? "" : step.observation],
    ["thought", step.thought],
    ["action", step.action],
    ["reply", step.action ? "" : step.reply],
    ["veto", vetoes.join("; ")],
    ["result", step.result],
    ["belief error", (step.belief_errors || []).join("; ")],
  ].filter(([, text]) => text).map(([where, text]) => [where, String(text)]);
}

// Of a log, only what a search asks about: a few kilobytes where the log has hundreds.
function digest(log) {
  return log.steps.map((step, i) => {
    const recalls = (step.recalls || []).map((r) => ({
      outcome: r.dropped_by || (r.warning ? "warned" : "used"), rule: r.rule || "",
      why: r.reason || r.warning || advice(r),
    }));
    const decisions = (step.decisions || []).map((d) => ({
      verdict: d.verdict, vetoed: Boolean(d.reason), rule: d.rule || (d.reason ? "procedure" : ""),
    }));
    const judged = step.judged || [];
    const rules = [...((step.rules || {}).situation || []).map((rule) => rule.id),
      ...judged.map(([id]) => id), ...[...recalls, ...decisions].map(({ rule }) => rule)];
    const { failed, action } = step;
    return { texts: textsOf(step, log.steps[i - 1]), failed, action, judged, recalls, decisions,
      rules: rules.filter(Boolean) };
  });
}

// A phrase as a pattern: letters of either case, any white space between its words.
function phrase(text) {
  const parts = text.trim().split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return text.trim() ? new RegExp(parts.join("\\s+"), "giu") : null;
}

// What the address asks for, ready to be held against every step.
function queryOf(params) {
  const rule = (params.get("r") || "").trim().toLowerCase();
  return {
    pattern: phrase(params.get("x") || ""), rule, memory: params.get("m"), action: params.get("g"),
    speaks: (id) => !rule || id.toLowerCase().startsWith(rule),
  };
}

// What became of a memory; the names are those of the step log.
function fateFits(outcome, memory) {
  const shown = outcome === "used" || outcome === "warned";
  return memory === "shown" ? shown : memory === "dropped" ? !shown : outcome === memory;
}

function actionFits(step, { action, speaks }) {
  if (action === "refused") return step.failed;
  if (action === "unread") return !step.action;
  if (action === "broken") {
    return step.judged.some(([id, verdict]) => verdict === "broken" && speaks(id));
  }
  return step.decisions.some((d) => speaks(d.rule)
    && (action === "vetoed" ? d.vetoed : d.verdict === action));
}

// The words around a match, so that one can tell whether to open the step.
const AROUND = 60;
function textHit(texts, pattern) {
  for (const [where, text] of texts) {
    const index = text.search(pattern);
    if (index < 0) continue;
    const end = index + text.match(pattern)[0].length;
    return {
      where, match: text.slice(index, end),
      before: (index > AROUND ? "\u2026" : "") + text.slice(Math.max(0, index - AROUND), index),
      after: text.slice(end, end + AROUND) + (end + AROUND < text.length ? "\u2026" : ""),
    };
  }
  return null;
}

// Without a text to mark, a hit shows the memory or the veto that was asked for, or the action.
function plainHit(step, memory, action) {
  const veto = VETOES.includes(action) && step.texts.find(([where]) => where === "veto");
  const dropped = memory && fateFits(memory.outcome, "dropped");
  const [where, text] = memory ? [`memory ${dropped ? "dropped: " : ""}${memory.outcome}`, memory.why]
    : veto || ["action", step.action || "(no action could be read)"];
  return { where, before: text.slice(0, 3 * AROUND), match: "", after: "" };
}

function hitOf(step, query) {
  const { pattern, rule, memory, action, speaks } = query;
  if (rule && !step.rules.some(speaks)) return null;
  const recalled = memory
    && step.recalls.find((r) => (action || speaks(r.rule)) && fateFits(r.outcome, memory));
  if ((memory && !recalled) || (action && !actionFits(step, query))) return null;
  return pattern ? textHit(step.texts, pattern) : plainHit(step, recalled, action);
}

// The steps of an episode that fit, and the error that ended it, which is shown with the last.
function hitsOf(e, steps, query) {
  const hits = steps.map((step, i) => ({ step: i + 1, hit: hitOf(step, query) }));
  if (e.error && query.pattern && !query.rule && !query.memory && !query.action) {
    hits.push({ step: Math.max(1, e.steps), hit: textHit([["error", e.error]], query.pattern) });
  }
  return hits.filter(({ hit }) => hit).map(({ step, hit }) => ({ step, ...hit }));
}

// Searching the logs without holding up the page: in slices of a few milliseconds, and a newer
// search ends an older one. What was unpacked once is at hand for the next search.
const search = { turn: 0, digests: new Map() };
const SLICE_MS = 16;
const AHEAD = 4;

// Episodes whose counts already say that no step can fit need not be unpacked.
function digestOf(e, { memory, action }) {
  const vetoed = VETOES.includes(action);
  if (byId(e.log) && ((memory && !e.recalled) || (vetoed && !e.proposals))) return [];
  if (!search.digests.has(e)) {
    search.digests.set(e, unpackLog(e).then(digest).catch(() => null));
  }
  return search.digests.get(e);
}

// Says `report(episode, hits)` as it goes and `progress(seen, unread, done)` now and then.
async function searchSteps(episodes, params, report, progress) {
  const turn = search.turn += 1;
  const query = queryOf(params);
  let unread = 0;
  let paused = performance.now();
  for (let i = 0; i < episodes.length; i += 1) {
    // The browser unpacks in the background: a few are always on their way.
    episodes.slice(i, i + AHEAD).forEach((next) => digestOf(next, query));
    const e = episodes[i];
    const steps = await digestOf(e, query);
    if (turn !== search.turn) return;
    if (!steps) unread += 1;
    const hits = hitsOf(e, steps || [], query);
    if (hits.length) report(e, hits);
    if (performance.now() - paused > SLICE_MS) {
      progress(i + 1, unread, false);
      await new Promise((resolve) => { setTimeout(resolve); });
      if (turn !== search.turn) return;
      paused = performance.now();
    }
  }
  progress(episodes.length, unread, true);
}
