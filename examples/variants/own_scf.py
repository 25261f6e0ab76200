"""A custom state filter against the shipped one: it drops memories that need a full hand.

Run it from anywhere: ``python examples/variants/own_scf.py``.
"""

import rpms


def scf(state: rpms.EpisodeState) -> rpms.EpisodeState:
    """Drop the candidates that need a held object while the hand is empty."""
    recalls = []
    for recall in state["recalls"]:
        needed = [name for name in recall["advice"]["needs"] if name.startswith("you to hold ")]
        if needed and not recall["dropped_by"] and not state["belief"]["holding"]:
            reason = f"the hand is empty, and it needs {needed[0]}"
            recall = rpms.drop(recall, "scf", reason)
        recalls.append(recall)
    return {"recalls": recalls}


def mine() -> rpms.RpmsGraph:
    """Return the agent of condition D with this filter."""
    return rpms.build_graph({"scf": scf}, context=rpms.RunContext.for_condition("D"))


if __name__ == "__main__":
    arms: dict[str, rpms.Arm] = {
        "D": "D",
        "mine": mine,
    }
    report = rpms.evaluate(arms, out="runs/own-scf", limit=10, spread=True)
    print(report.as_markdown())
