"""The agent as a LangGraph graph with a stage and a node of your own: one variant, three uses.

``python examples/minimal.py`` runs an episode and then compares the variant with condition D. For
LangGraph Studio, ``langgraph.json`` needs a line: ``"mine": "./examples/minimal.py:mine"``. The
model is ``sim``, a built-in planner: no key, no download, and no evidence about language models.
"""

from operator import add
from typing import Annotated

import rpms

MANUAL = rpms.load_manual("alfworld")


class State(rpms.EpisodeState, total=False):
    """The agent's state, and a key of this variant."""

    objections: Annotated[list[str], add]


def my_scf(state: State) -> State:
    """Replace the stage ``scf``: drop every memory after an action that had no effect."""
    why = "the last action had no effect" if state["ineffective"] else ""
    return {"recalls": [rpms.drop(r, "scf", why) if why else r for r in state["recalls"]]}


def referee(state: State) -> State:
    """Before ``env_step``: note why the rules object to the next action, and change nothing."""
    diagnosis = rpms.check_action(MANUAL, state["action"], state["belief"])
    return {"objections": [diagnosis.reason]}


def mine() -> rpms.RpmsGraph:
    """Return the agent of condition D with this stage and this node."""
    context = rpms.RunContext.for_condition("D", max_steps=20)
    return rpms.build_graph(
        {"scf": my_scf}, before={"env_step": referee}, state_schema=State, context=context
    )


if __name__ == "__main__":
    for update in mine().stream({"task": 6}, stream_mode="updates"):
        if objection := "".join(update.get("referee", {}).get("objections", [])):
            print(f"  the rules: {objection}")
        if step := update.get("env_step"):
            turn = step["history"][-1]
            print(f"{turn['action']:36} {turn['observation'][:50]}")
            if step["done"]:
                print("won" if step["success"] else "lost")
    report = rpms.evaluate({"D": "D", "mine": mine}, out="runs/mine", limit=4)
    print(*report.verdict, sep="\n")
