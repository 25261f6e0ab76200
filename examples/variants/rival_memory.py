"""A published memory method beside the shipped one: whole trajectories, retrieved by goal.

Run it from anywhere: ``python examples/variants/rival_memory.py``.
"""

import rpms

if __name__ == "__main__":
    rpms.learn(out="runs/trajectories.jsonl", method="trajectories", limit=20)
    theirs = rpms.RunContext(memory_method="trajectories")
    arms: dict[str, rpms.Arm] = {
        "D": rpms.RunContext(),
        "D trajectories": rpms.Variant(theirs, memory="runs/trajectories.jsonl"),
    }
    report = rpms.evaluate(arms, out="runs/rival-memory", limit=10, spread=True)
    print(report.as_markdown())
