// Search in steps: by text, rule, outcome of memories, and decision on the action.
// A step matches if all criteria hold in that one step.
const STEP_FIELDS = ["x", "r", "m", "g"];
const VETOES = ["vetoed", "retried", "replaced", "fallback", "overridden"];
const asksForSteps = (params) => STEP_FIELDS.some((name) => (params.get(name) || "").trim());

// The texts of a step. An observation that is the result of the step before is not repeated, so
// that "Nothing happens." is found once.
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

// The searchable part of a log: a few kilobytes instead of hundreds.
function digest(log) {
  return log.steps.map((step, i) => {
    const recalls = (step.recalls || []).map((r) => ({
      outcome: r.dropped_by || (r.warning ? "warned" : "shown"), rule: r.rule || "",
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

// A phrase as a pattern: case-insensitive, with any white space between its words.
function phrase(text) {
  const parts = text.trim().split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return text.trim() ? new RegExp(parts.join("\\s+"), "giu") : null;
}

// The search criteria from the address.
function queryOf(params) {
  const rule = (params.get("r") || "").trim().toLowerCase();
  return {
    pattern: phrase(params.get("x") || ""), rule, memory: params.get("m"), action: params.get("g"),
    matchesRule: (id) => !rule || id.toLowerCase().startsWith(rule),
  };
}

// The outcomes have the names of the step log.
function outcomeMatches(outcome, memory) {
  const shown = outcome === "shown" || outcome === "warned";
  return memory === "shown" ? shown : memory === "dropped" ? !shown : outcome === memory;
}

function actionMatches(step, { action, matchesRule }) {
  if (action === "rejected") return step.failed;
  if (action === "unread") return !step.action;
  if (action === "broken") {
    return step.judged.some(([id, verdict]) => verdict === "broken" && matchesRule(id));
  }
  return step.decisions.some((d) => matchesRule(d.rule)
    && (action === "vetoed" ? d.vetoed : d.verdict === action));
}

// A match is shown with this many characters on each side.
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

// A hit without a text to mark shows the matching memory or veto, or else the action.
function plainHit(step, memory, action) {
  const veto = VETOES.includes(action) && step.texts.find(([where]) => where === "veto");
  const dropped = memory && outcomeMatches(memory.outcome, "dropped");
  const [where, text] = memory ? [`memory ${dropped ? "dropped: " : ""}${memory.outcome}`, memory.why]
    : veto || ["action", step.action || "(no readable action)"];
  return { where, before: text.slice(0, 3 * AROUND), match: "", after: "" };
}

function hitOf(step, query) {
  const { pattern, rule, memory, action, matchesRule } = query;
  if (rule && !step.rules.some(matchesRule)) return null;
  const recalled = memory
    && step.recalls.find((r) => (action || matchesRule(r.rule)) && outcomeMatches(r.outcome, memory));
  if ((memory && !recalled) || (action && !actionMatches(step, query))) return null;
  return pattern ? textHit(step.texts, pattern) : plainHit(step, recalled, action);
}

// The matching steps of an episode; the error that ended it counts as text of the last step.
function hitsOf(e, steps, query) {
  const hits = steps.map((step, i) => ({ step: i + 1, hit: hitOf(step, query) }));
  if (e.error && query.pattern && !query.rule && !query.memory && !query.action) {
    hits.push({ step: Math.max(1, e.steps), hit: textHit([["error", e.error]], query.pattern) });
  }
  return hits.filter(({ hit }) => hit).map(({ step, hit }) => ({ step, ...hit }));
}

// The search runs in slices of a few milliseconds, so that the page stays responsive. A new search
// ends the old one. Unpacked digests are kept for the next search.
const search = { turn: 0, digests: new Map() };
const SLICE_MS = 16;
const AHEAD = 4;

// Episodes whose counts exclude a match are not unpacked.
function digestOf(e, { memory, action }) {
  const vetoed = VETOES.includes(action);
  if (byId(e.log) && ((memory && !e.recalled) || (vetoed && !e.proposals))) return [];
  if (!search.digests.has(e)) {
    search.digests.set(e, unpackLog(e).then(digest).catch(() => null));
  }
  return search.digests.get(e);
}

// Calls `report(episode, hits)` for each episode and `progress(seen, unread, done)` after each slice.
async function searchSteps(episodes, params, report, progress) {
  const turn = search.turn += 1;
  const query = queryOf(params);
  let unread = 0;
  let paused = performance.now();
  for (let i = 0; i < episodes.length; i += 1) {
    // The browser unpacks in the background: a few logs ahead.
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
