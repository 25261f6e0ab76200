// Searching the logs without holding up the page: one after the other, in slices of a few
// milliseconds, and a newer search ends an older one. Nothing is unpacked before it is asked for.

const search = { turn: 0, kept: new Map(), letters: 0 };
const SLICE_MS = 16;
const AHEAD = 4;
// What digests may take together; logs beyond that are unpacked again by the next search.
const KEPT_LETTERS = 60e6;

const pause = () => new Promise((resolve) => { setTimeout(resolve); });

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
      await pause();
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
