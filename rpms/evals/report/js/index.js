// The list of runs follows them.
async function look() {
  try {
    if (!document.hidden) morph(document.querySelector("tbody"), (await freshPage()).querySelector("tbody"));
    document.getElementById("connection").textContent = "";
  } catch (problem) {
    document.getElementById("connection").textContent = problem instanceof TypeError
      ? "'rpms view' does not answer; what is shown stays." : problem.message;
  }
  setTimeout(look, 2000);
}
setTimeout(look, 2000);
