"""Record the one-shot examples of ScienceWorld's prompt from our own runs.

One won episode per family, played by the built-in planner under Rules-only on train variations,
of a length that shows the procedure without filling the prompt. Run it again after changing the
planner or the wording of observations:

    python -m tools.record_science_examples
"""

from __future__ import annotations

import json

from rpms.envs import Task, get_environment
from rpms.graph import build_graph, run_episode
from rpms.nodes.context import RunContext
from rpms.nodes.prompt_build import said
from rpms.nodes.state import EpisodeOutput
from rpms.vocabulary.turn import Message

ENVIRONMENT = get_environment("scienceworld")
STEPS = range(6, 31)
CHARACTERS = 9000


def main() -> None:
    """Write rpms/envs/scienceworld/prompts/examples/<family>.json for all four families."""
    folder = ENVIRONMENT.prompts / "examples"
    graph, context = build_graph(), RunContext.for_condition("B")
    wanted = set(ENVIRONMENT.goal_types())
    for task in ENVIRONMENT.tasks("train_mini"):
        family = ENVIRONMENT.parse_goal(task["goal"])["type"]
        if family not in wanted:
            continue
        result = run_episode(
            task["id"], env="scienceworld", split="train_mini", context=context, graph=graph
        )
        if fits(result):
            wanted.remove(family)
            text = json.dumps(example(family, task, result), indent=1)
            (folder / f"{family}.json").write_text(text + "\n", encoding="utf-8")
            print(f"{family}: {task['id']}, {result['steps']} steps")
    if wanted:
        raise SystemExit(f"no fitting episode for {', '.join(sorted(wanted))}")


def fits(result: EpisodeOutput) -> bool:
    """Won, without a refusal, and short."""
    length = sum(len(turn["observation"]) for turn in result["history"])
    clean = result["success"] and not result["invalid_actions"]
    return clean and result["steps"] in STEPS and length <= CHARACTERS


def example(family: str, task: Task, result: EpisodeOutput) -> dict[str, object]:
    """The transcript as chat messages that end with an observation."""
    messages = [Message(role="user", content=result["first_observation"])]
    for turn in result["history"]:
        messages.append(Message(role="assistant", content=said(turn)))
        messages.append(Message(role="user", content=turn["observation"]))
    return {"goal_type": family, "task": task["id"], "messages": messages}


if __name__ == "__main__":
    main()
