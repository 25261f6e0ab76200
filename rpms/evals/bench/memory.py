"""Does the memory stay cheap as it grows?

Measures one step's retrieval + SCF + arbitration on synthetic memories of growing size, spread
over realistic goals, and reports each size as a ratio to the smallest in the same run.
"""

from __future__ import annotations

import json
import math
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from langgraph.runtime import Runtime

from rpms.envs import get_environment
from rpms.memory_store import MemoryIndex, load_index
from rpms.memory_store.snapshot import FORMAT, SCHEMA_VERSION
from rpms.nodes.arbitration import arbitration
from rpms.nodes.context import RunContext
from rpms.nodes.instantiation import Moment
from rpms.nodes.manual import load_manual
from rpms.nodes.memories.own import recall
from rpms.nodes.scf import scf
from rpms.nodes.state import EpisodeState

SIZES = (233, 10_000, 100_000, 1_000_000)
PAPER_MIX = (64, 157, 12)
"""Success snippets, failure lessons and schemas after the paper's first round."""
SEEN, ASKED = 60, 24
"""Tasks whose goals the memories are about, and tasks that ask for them."""
CONTEXT = RunContext(memory=True, rules=True)


def bench_memory(sizes: Sequence[int] = SIZES, rounds: int = 20) -> list[dict[str, float]]:
    """One row per size: load time, memory and per-step cost, with ratios to the first row."""
    rows: list[dict[str, float]] = []
    memories: list[MemoryIndex] = []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            file = Path(folder) / f"{size}.jsonl"
            write_synthetic(file, size)
            index, row = _load(file, size)
            memories.append(index)
            rows.append(row)
            file.unlink()
    for row, cost in zip(rows, _step_costs(memories, rounds), strict=True):
        row["step_ms"] = cost * 1000
        row["step_ratio"] = row["step_ms"] / rows[0]["step_ms"]
    return rows


def _load(file: Path, size: int) -> tuple[MemoryIndex, dict[str, float]]:
    # Processor time: what loading costs, whatever else the machine is doing.
    began = time.process_time()
    index = load_index(file, "alfworld", load_manual("alfworld").domain.categories)
    loaded = time.process_time() - began
    states = list(situations())
    first = time.perf_counter()
    for state in states:
        recall(index, _moment(state), CONTEXT)
    return index, {
        "entries": size,
        "load_s": loaded,
        "peak_mb": _peak_mb(),
        "once_per_goal_ms": (time.perf_counter() - first) / len(states) * 1000,
    }


def _peak_mb() -> float:
    """The most memory this process ever had.

    Linux lets a process inherit the peak of whoever started it in ``ru_maxrss``; its own is here.
    A sandbox that plays Linux may only say what is held now, which after loading is the same.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.is_file() else []
    said = dict(line.split(":", 1) for line in lines)
    if own := said.get("VmHWM") or said.get("VmRSS"):
        return int(own.split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _step_costs(memories: Sequence[MemoryIndex], rounds: int) -> list[float]:
    """What a step costs with each memory: the median over situations of the best of all rounds.

    The memories take turns, so that a busy neighbour slows all of them alike, and the best round
    is the one that was not interrupted.
    """
    states = list(situations())
    best = [[math.inf] * len(states) for _ in memories]
    for _ in range(rounds):
        for number, index in enumerate(memories):
            for place, state in enumerate(states):
                best[number][place] = min(best[number][place], step_cost(index, state))
    return [statistics.median(costs) for costs in best]


def step_cost(index: MemoryIndex, state: EpisodeState) -> float:
    """Seconds of one step's retrieval, filter and arbitration."""
    runtime = cast(Runtime[RunContext], SimpleNamespace(context=CONTEXT, store=None))
    start = time.perf_counter()
    state["recalls"] = recall(index, _moment(state), CONTEXT)
    state["recalls"] = scf(state, runtime)["recalls"]
    arbitration(state, runtime)
    return time.perf_counter() - start


def _moment(state: EpisodeState) -> Moment:
    manual = load_manual("alfworld")
    return Moment(manual, state["goal"], state["sub_goal"], state["belief"])


def situations() -> Iterator[EpisodeState]:
    """Goals of unseen tasks, each in a state with an empty and with a full hand."""
    env = get_environment("alfworld")
    opening = (
        "You are in the middle of a room. Looking quickly around you, you see a cabinet 1, "
        "a countertop 1, a fridge 1, a microwave 1, a sinkbasin 1, a desk 1, and a drawer 1.\n\n"
    )
    for task in env.tasks("generated_unseen", ASKED):
        goal = env.parse_goal(task["goal"])
        belief = env.first_belief(opening)
        thing = f"{goal['object']} 1"
        for action, answer in (
            ("go to countertop 1", f"On the countertop 1, you see a {thing}."),
            (f"take {thing} from countertop 1", f"You pick up the {thing} from the countertop 1."),
        ):
            belief = env.update_belief(belief, action, answer)
            yield EpisodeState(
                env="alfworld", goal=goal, belief=belief, sub_goal=env.sub_goal(goal, belief, [])
            )


def write_synthetic(file: Path, size: int, seed: int = 0) -> None:
    """A memory in the paper's proportions, over the goals of a seen split."""
    rng = random.Random(seed)
    goals = _goals()
    total = sum(PAPER_MIX)
    with file.open("w", encoding="utf-8") as out:
        header = {"format": FORMAT, "schema_version": SCHEMA_VERSION, "env": "alfworld",
                  "sources": ["synthetic"], "rounds": 0, "entries": size, "counts": {}}  # fmt: skip
        out.write(json.dumps(header) + "\n")
        for number in range(size):
            kind = number % total
            if kind < PAPER_MIX[0]:
                entry = _success(rng, goals)
            elif kind < PAPER_MIX[0] + PAPER_MIX[1]:
                entry = _failure(rng, goals)
            else:
                entry = _schema(rng)
            out.write(json.dumps({"id": f"{entry['type']}_{number:07}", **entry}) + "\n")


def _goals() -> list[tuple[str, str, str]]:
    """The goals of a seen split as large as the paper's."""
    env = get_environment("alfworld")
    goals = [env.parse_goal(task["goal"]) for task in env.tasks("generated_seen", SEEN)]
    return [(goal["signature"], goal["object"], goal["destination"]) for goal in goals]


def _success(rng: random.Random, goals: list[tuple[str, str, str]]) -> dict[str, Any]:
    signature, thing, place = rng.choice(goals)
    name, spot = f"{thing} {rng.randint(1, 4)}", f"{place} {rng.randint(1, 9)}"
    if rng.random() < 0.5:
        held, actions = "none", [f"go to {spot}", f"open {spot}", f"take {name} from {spot}"]
        there = "object's place"
        lifted = [f"go to {{{there}}}", f"open {{{there}}}", f"take {{object}} from {{{there}}}"]
    else:
        held, actions = name, [f"go to {spot}", f"put {name} in/on {spot}"]
        lifted = ["go to {destination}", "put {object} in/on {destination}"]
    return {
        "type": "success", "goal_signature": signature, "state_signature": f"holding={held}",
        "sub_goal_type": "take_object", "actions": actions, "lifted": lifted,
        "success_count": rng.randint(1, 9), "retrieval_weight": 1.0,
    }  # fmt: skip


def _failure(rng: random.Random, goals: list[tuple[str, str, str]]) -> dict[str, Any]:
    signature, thing, place = rng.choice(goals)
    name, spot = f"{thing} {rng.randint(1, 4)}", f"{place} {rng.randint(1, 9)}"
    return {
        "type": "failure", "goal_signature": signature,
        "state_signature": f"holding={rng.choice(['none', name])}",
        "failed_action": f"take {name} from {spot}", "violated": ["at(place)"],
        "lifted": "take {object} from {object's place}", "failure_type": "precondition_not_met",
        "failure_message": "Nothing happens.", "corrective_rule": "be at <place>",
        "occurrence_count": rng.randint(1, 9), "retrieval_weight": 1.0,
    }  # fmt: skip


def _schema(rng: random.Random) -> dict[str, Any]:
    action = rng.choice(["take", "put", "heat", "cool", "clean", "open"])
    good, bad = rng.randint(1, 99), rng.randint(0, 20)
    return {
        "type": "schema", "action_template": f"{action} {{object}}", "action_type": action,
        "preconditions": ["be at place"], "effects": [], "success_count": good,
        "failure_count": bad, "confidence": round(good / (good + bad), 4), "retrieval_weight": 1.0,
    }  # fmt: skip
