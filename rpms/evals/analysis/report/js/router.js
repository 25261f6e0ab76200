// The address determines the view, so every view can be linked.
let view = VIEWS[0];

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
  openView(name, rest, query);
}

const EVERYWHERE = { "?": () => byId("help").showModal() };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
  if (typing && event.key === "Escape") { typing.blur(); return; }
  const keys = { ...EVERYWHERE, ...KEYS[view] };
  if (typing || !Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
});

byId("help-open").addEventListener("click", () => byId("help").showModal());
byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("main").focus(); });
addEventListener("hashchange", route);
route();
