"""One variant, three uses: run it from Python, see it in LangGraph Studio, measure it against D.

``python examples/minimal.py`` does the first and the last. For Studio, ``langgraph.json`` needs a
line: ``"mine": "./examples/minimal.py:mine"``.
"""

import rpms


class State(rpms.EpisodeState, total=False):
    """The agent's state, and a key of this variant."""

    looks: int


def my_scf(state: State) -> State:
    """Keep memories only where nothing was rejected lately."""
    why = "the last action was rejected" if state["ineffective"] else ""
    return {"recalls": [rpms.drop(r, "scf", why) if why else r for r in state["recalls"]]}


def referee(state: State) -> State:
    """Count how often the agent looks around."""
    return {"looks": state.get("looks", 0) + (state["action"] == "look")}


def mine() -> rpms.RpmsGraph:
    """Return the agent of condition D with these two nodes."""
    context = rpms.RunContext.for_condition("D", max_steps=20)
    return rpms.build_graph(
        {"scf": my_scf}, before={"env_step": referee}, state_schema=State, context=context
    )


if __name__ == "__main__":
    print(rpms.run_episode(2, graph=mine())["steps"])
    report = rpms.evaluate({"D": "D", "mine": mine}, out="runs/mine", limit=20)
    print(report.as_markdown())
