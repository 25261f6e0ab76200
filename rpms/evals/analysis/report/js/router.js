// The address determines the view, so every view can be linked.
const VIEWS = ["results", "episodes", "episode", "compare"];
let view = "results";

function show(name) {
  const changed = view !== name;
  view = name;
  for (const each of VIEWS) byId(`view-${each}`).hidden = each !== name;
  for (const link of document.querySelectorAll("[data-view]")) {
    const current = link.dataset.view === name || (name === "episode" && link.dataset.view === "episodes");
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (changed) scrollTo({ top: 0, behavior: "instant" });
}

function decodePart(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map(decodePart);
  if (name === "episodes") {
    showList(new URLSearchParams(query));
    const back = view === "episode" && viewer.episode;
    show("episodes");
    if (back) focusRowOf(viewer.episode);
  } else if (name === "episode" || name === "transcript") {
    show("episode");
    showEpisode(rest[0], rest[1], Number.parseInt(rest[2], 10) || 1, name === "transcript");
  } else if (name === "compare") {
    show("compare");
    showComparison(rest[0], rest[1], rest[2], Number.parseInt(rest[3], 10) || 0);
  } else {
    show("results");
    const table = rest[0] && byId(`table-${rest[0]}`);
    if (table) table.scrollIntoView();
  }
}

const toList = () => { location.hash = listHash(list.params); };
const moves = (go, next, previous) => ({
  j: () => go(1), [next]: () => go(1), k: () => go(-1), [previous]: () => go(-1),
  Home: () => go(-1e6), End: () => go(1e6),
});
const EVERYWHERE = {
  "/": () => {
    toList();
    setTimeout(() => byId("filters").elements.x.focus());
  },
  "?": () => byId("help").showModal(),
};
// Left and right move through steps, up and down through rows; in other views they scroll.
const KEYS = {
  results: EVERYWHERE,
  episodes: {
    ...EVERYWHERE, ...moves(moveRow, "ArrowDown", "ArrowUp"),
    Escape: () => document.activeElement?.blur(),
  },
  episode: {
    ...EVERYWHERE, ...moves((by) => goToStep(viewer.step + by), "ArrowRight", "ArrowLeft"),
    n: () => neighbour(1), p: () => neighbour(-1), t: switchReading, Escape: toList,
  },
  compare: {
    ...EVERYWHERE, ...moves((by) => selectPair(pairing.selected + by), "ArrowRight", "ArrowLeft"),
    d: () => { if (pairing.diverged) selectPair(pairing.diverged); }, Escape: toList,
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
  if (typing && event.key === "Escape") { typing.blur(); return; }
  if (typing || !Object.hasOwn(KEYS[view], event.key)) return;
  event.preventDefault();
  KEYS[view][event.key]();
});

byId("help-open").addEventListener("click", () => byId("help").showModal());
byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("main").focus(); });
prepareList();
addEventListener("hashchange", route);
route();
