// A served page follows its run, and the list of runs all of them: whatever is open stays open.
const EVERY_MS = 2000;

// A later state of the page is laid over the one that is read: what is the same stays in place,
// with its focus, its scrolling, and what was unfolded.
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName || old.nodeType !== Node.ELEMENT_NODE) {
    old.replaceWith(fresh);
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  morphChildren(old, fresh);
}

function morphChildren(old, fresh) {
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((node, i) => { if (before[i]) morph(before[i], node); else old.append(node); });
  before.slice(after.length).forEach((node) => node.remove());
}

async function freshPage() {
  const answer = await fetch(location.pathname);
  if (!answer.ok) throw new Error(await answer.text());
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// A time as people write it.
function spell(seconds) {
  const [h, min, s] = [seconds / 3600, (seconds / 60) % 60, seconds % 60].map(Math.floor);
  if (h) return `${h} h ${min} min`;
  return min ? `${min} min ${s} s` : `${s} s`;
}

function drawLive(now) {
  const spent = [now.tokens === null ? "" : `${now.tokens.toLocaleString("en")} tokens`,
    now.usd ? `$${now.usd.toFixed(4)}` : ""].filter(Boolean).join(", ");
  const [kind, state] = now.going ? ["good", "Going on"]
    : now.done >= now.planned ? ["", "Finished"] : ["warn", "Stopped before its end"];
  const flying = now.flying.map((job) => el("li", null,
    `${conditionNames.get(job.c) || job.c} \u00b7 `, el("code", null, job.task),
    el("span", { class: "muted" }, ` for ${spell(job.seconds)}`)));
  morphChildren(byId("live"), el("div", null,
    el("div", { class: "line" }, el("span", { class: `badge ${kind}` }, state),
      el("progress", { max: String(now.planned), value: String(now.done), "aria-label": "Episodes" }),
      el("span", null, `${now.done.toLocaleString("en")} of ${now.planned.toLocaleString("en")} episodes`),
      spent ? el("span", { class: "muted" }, `${spent} ${now.going ? "so far" : "in all"}`) : null),
    flying.length ? el("details", null, el("summary", null, `${flying.length} in flight`),
      el("ul", null, flying)) : null));
}

// Episodes stay the same objects, so that an open one is still found in the list.
function takeData(fresh) {
  Object.assign(data, { live: fresh.live, sets: fresh.sets, rules: fresh.rules });
  data.episodes = fresh.episodes.map((row, number) => {
    const known = episodesByKey.get(keyOf(row.c, row.task)) || {};
    if (known.tokens !== row.tokens) {  // played again, or new
      decoded.delete(known.log);
      search.digests.delete(known);
    }
    episodesByKey.set(keyOf(row.c, row.task), Object.assign(known, row, { number }));
    return known;
  });
}

function redrawList() {
  const focused = document.activeElement?.getAttribute("href");
  const { limit } = list;
  list.key = "";
  showList(list.params);
  list.limit = limit;
  drawRows();
  const again = focused && byId("list").querySelector(`a[href="${CSS.escape(focused)}"]`);
  again?.focus({ preventScroll: true });
}

function redraw() {
  // A search of the steps is not begun again with every episode: its hits stay.
  if (view === "episodes" && !asksForSteps(list.params)) redrawList();
  else if (view === "episode" && !viewer.episode) route();
}

async function follow() {
  const page = await freshPage();
  takeData(JSON.parse(page.getElementById("data").textContent));
  morphChildren(byId("view-results"), page.getElementById("view-results"));
  document.querySelector("nav .count").textContent = page.querySelector("nav .count").textContent;
  document.querySelector(".foot").textContent = page.querySelector(".foot").textContent;
  redraw();
}

async function lookAtRun() {
  const answer = await fetch("state");
  if (!answer.ok) throw new Error(await answer.text());
  const now = await answer.json();
  drawLive(now);
  if (now.version !== data.live) await follow();
}

async function lookAtList() {
  morph(document.querySelector("tbody"), (await freshPage()).querySelector("tbody"));
  document.getElementById("live").replaceChildren();
}

async function look() {
  try {
    await (document.getElementById("data") ? lookAtRun() : lookAtList());
  } catch (problem) {
    const gone = problem instanceof TypeError;
    const badge = document.createElement("span");
    badge.className = "badge warn";
    badge.textContent = gone ? "not connected" : "error";
    document.getElementById("live").replaceChildren(badge,
      gone ? " 'rpms view' does not answer; what is shown stays." : ` ${problem.message}`);
  }
}

// Nobody reads a page in the background; it catches up when it is looked at again.
async function keepLooking() {
  if (!document.hidden) await look();
  setTimeout(keepLooking, EVERY_MS);
}
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
keepLooking();
