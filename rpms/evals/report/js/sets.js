// Episodes chosen elsewhere on the page: those behind a figure of a table, and why one was lost.
const members = (name) => new Set(((data.sets || {})[name] || { of: [] }).of);

// Whether an episode is among those that the address asks for; without a set every one is.
function inSet(params) {
  const name = params.get("set");
  if (!name) return () => true;
  const chosen = members(name);
  return (e) => chosen.has(e.number);
}

// Says which figure the list belongs to, and how to see the others again.
function drawSet(params) {
  const name = params.get("set");
  const rest = new URLSearchParams(params);
  rest.delete("set");
  const found = name && (data.sets || {})[name];
  byId("chosen").hidden = !name;
  byId("chosen").replaceChildren(...(name ? [
    found ? `Only these: ${found.title}. ` : "This run has no such set of episodes. ",
    el("a", { href: `#/results/${encode(name.split("/")[0])}` }, "The table"), " \u00b7 ",
    el("a", { href: listHash(rest), id: "unset" }, "All episodes")] : []));
}

// One line on where a lost episode went wrong, leading to the step.
function whyLine(e) {
  if (!e.cause) return null;
  const told = [el("span", { class: "cause" }, e.cause), `: ${e.why}`];
  return el("p", { class: "why" }, e.at ? el("a", { href: episodeLink(e, e.at) }, told) : told);
}
