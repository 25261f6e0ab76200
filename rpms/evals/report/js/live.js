// A served page follows its run: episodes appear as they end, and whatever is open stays open.
const EVERY_MS = 2000;

async function fetchLog(e) {
  const answer = await fetch(e.log);
  if (!answer.ok) throw new Error("The run folder has no step log of this episode.");
  return answer.arrayBuffer();
}

function since(seconds) {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

function liveLine(now) {
  const spent = [now.tokens === null ? "" : `${now.tokens.toLocaleString("en")} tokens`,
    now.usd ? `$${now.usd.toFixed(4)}` : ""].filter(Boolean).join(", ");
  const told = now.going ? "Going on" : now.done >= now.planned ? "Finished" : "Stopped before its end";
  return el("div", { class: "line" },
    el("span", { class: `badge ${now.going ? "good" : now.done >= now.planned ? "" : "warn"}` }, told),
    el("progress", { max: String(now.planned), value: String(now.done), "aria-label": "Episodes" }),
    el("span", null, `${now.done.toLocaleString("en")} of ${now.planned.toLocaleString("en")} episodes`),
    spent ? el("span", { class: "muted" }, `${spent} ${now.going ? "so far" : "in all"}`) : null);
}

function inFlight(now) {
  if (!now.flying.length) return null;
  return el("details", null, el("summary", null, `${now.flying.length} in flight`),
    el("ul", null, now.flying.map((job) => el("li", null,
      `${conditionNames.get(job.c) || job.c} \u00b7 `, el("code", null, job.task),
      el("span", { class: "muted" }, ` for ${since(job.seconds)}`)))));
}

function drawLive(now) {
  morphChildren(byId("live"), el("div", null, liveLine(now), inFlight(now)));
}

// Episodes stay the same objects, so that an open one is still found in the list.
function takeData(fresh) {
  data.live = fresh.live;
  data.sets = fresh.sets;
  data.rules = fresh.rules;
  data.episodes = fresh.episodes.map((row, number) => {
    const known = episodesByKey.get(keyOf(row.c, row.task));
    if (known && known.tokens !== row.tokens) decoded.delete(known.log);
    const episode = Object.assign(known || {}, row, { number });
    episodesByKey.set(keyOf(row.c, row.task), episode);
    return episode;
  });
}

function redrawList() {
  const held = document.activeElement && document.activeElement.getAttribute("href");
  const { limit } = list;
  list.key = "";
  showList(list.params);
  list.limit = limit;
  drawRows();
  const again = held && byId("list").querySelector(`a[href="${CSS.escape(held)}"]`);
  if (again) again.focus({ preventScroll: true });
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

async function look() {
  try {
    const answer = await fetch("state");
    if (!answer.ok) throw new Error(await answer.text());
    const now = await answer.json();
    drawLive(now);
    if (now.version !== data.live) await follow();
  } catch (problem) {
    const gone = problem instanceof TypeError;
    byId("live").replaceChildren(el("span", { class: "badge warn" }, gone ? "not connected" : "error"),
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
