"""Run folders for the tests: made to measure, whoever won what is given; or played in short."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rpms.evals.analysis.step_analysis import Analysis, read_analyses
from rpms.evals.records.run_folder import Run, read_run
from rpms.evals.records.schema import Episode, EpisodeLine
from rpms.evals.running.arms import read_settings
from rpms.evals.running.costs import NO_LIMIT, Budget
from rpms.evals.running.plan import RunPlan, make_plan
from rpms.evals.running.plan_file import condition_contexts
from rpms.evals.running.runner import RunSession, Watch, local_pool
from rpms.evals.running.workers import Pool
from rpms.models.reply_cache import cached_replies
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.recall import Recall, drop, new_advice, new_recall

TYPES = (
    "look_at_obj_in_light", "pick_and_place_simple", "pick_clean_then_place_in_recep",
    "pick_cool_then_place_in_recep", "pick_heat_then_place_in_recep", "pick_two_obj_and_place",
)  # fmt: skip
LABEL = "sim (built-in planner, not a language model)"
SYSTEM = "You act in a home. Answer with a thought and one action.\n" + "go to / take / put. " * 60
# What an attacker, or a clumsy model, may put into an observation or a reply.
NASTY = "</script><script>window.hacked = true</script><img src=x onerror=hacked=1> & \u2028 ]]>"


def slug(text: str) -> str:
    """As the run format has it, written down once more so that the code is tested against it."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", text)[:80]
    return plain + "-" + hashlib.sha1(text.encode()).hexdigest()[:8]


def contexts(*labels: str) -> dict[str, dict[str, Any]]:
    """Settings for labels such as ``D scf=off`` or ``round 2``."""
    settings = {}
    for label in labels:
        letter, _, change = label.partition(" ")
        if letter == "round":
            context = RunContext(memory_file=f"memory.round{change}.jsonl")
        else:
            context = RunContext.for_condition(letter)
        for name, _, value in (part.partition("=") for part in change.split() if "=" in part):
            context = context.with_(**read_settings({name: value}))
        settings[label] = {**context.plain}
    return settings


def task_id(number: int) -> str:
    return f"{TYPES[number % len(TYPES)]}-Mug-None-Shelf-{number}/trial_T{number:05}"


def manifest(labels: Sequence[str], count: int, **changes: Any) -> dict[str, Any]:
    return {
        "format": 2, "created": "2030-01-02T03:04:05", "finished": "2030-01-02T04:04:05",
        "env": "alfworld", "split": "generated_unseen", "commit": "abc1234",
        "model": "sim", "model_label": LABEL, "base_url": "",
        "conditions": changes.get("conditions") or contexts(*labels),
        "tasks": [
            {"id": task_id(i), "index": i, "type": TYPES[i % len(TYPES)],
             "goal": f"put a mug in shelf {i}."}
            for i in range(count)
        ],
        "hashes": {"rules": "r" * 64, "memory": {"shipped": "m" * 64}},
        "versions": {"python": "3.11"}, "settings": {"max_steps": 50, "limit": count, "seed": 0},
        "workers": 2,
        **changes,
    }  # fmt: skip


def episode(condition: str, number: int, success: bool, **changes: Any) -> dict[str, Any]:
    steps = changes.get("steps", 6 if success else 12)
    return {
        "condition": condition, "env": "alfworld", "split": "generated_unseen",
        "task": task_id(number), "index": number, "type": TYPES[number % len(TYPES)],
        "goal": f"put a mug in shelf {number}.", "signature": "pick:mug:shelf",
        "success": success, "score": float(success), "steps": steps,
        "failure_mode": None if success else "timeout", "error": "",
        "prompt_tokens": 1000 * steps, "cached_tokens": 400 * steps, "output_tokens": 20 * steps,
        "cost_usd": None, "model_calls": steps, "cache_hits": 0,
        "seconds": 1.5, "env_seconds": 0.5, "model_seconds": 0.5, "started": "2030-01-02T03:04:06",
        "first_observation": "You are in the middle of a room.", "history": [],
        **changes,
    }  # fmt: skip


def line(condition: str, number: int, success: bool, **changes: Any) -> EpisodeLine:
    return EpisodeLine(**episode(condition, number, success, **changes))


def write_run(
    folder: Path,
    wins: Mapping[str, Sequence[bool]],
    *,
    logs: bool = True,
    lines: Mapping[tuple[str, int], dict[str, Any]] | None = None,
    steps: Mapping[tuple[str, int], Mapping[int, dict[str, Any]]] | None = None,
    **changes: Any,
) -> Path:
    """A run in which each condition wins the tasks marked True.

    ``lines`` overrides what some episodes are, ``steps`` some steps of their logs by number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tasks = max(map(len, wins.values()))
    (folder / "manifest.json").write_text(json.dumps(manifest([*wins], tasks, **changes)))
    with (folder / "episodes.jsonl").open("w") as out:
        for condition, row in wins.items():
            for number, won in enumerate(row):
                line = episode(condition, number, won, **(lines or {}).get((condition, number), {}))
                out.write(json.dumps(line) + "\n")
                if logs:
                    write_log(folder, line, (steps or {}).get((condition, number), {}))
    return folder


def write_repeats(folder: Path, ends: dict[str, list[list[bool]]], **changes: Any) -> Run:
    """By condition and task, how each repeat ended."""
    often = max(len(repeats) for tasks in ends.values() for repeats in tasks)
    write_run(folder, {name: [repeats[0] for repeats in tasks] for name, tasks in ends.items()},
              logs=False, settings={"repeats": often}, **changes)  # fmt: skip
    return add_lines(folder, *(
        episode(name, number, won, repeat=repeat)
        for name, tasks in ends.items() for number, repeats in enumerate(tasks)
        for repeat, won in enumerate(repeats[1:], start=2)
    ))  # fmt: skip


def add_lines(folder: Path, *lines: dict[str, Any]) -> Run:
    """The run with more lines of episodes; a later line supersedes an earlier one."""
    with (folder / "episodes.jsonl").open("a") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    return read_run(folder)


def write_log(
    folder: Path, line: dict[str, Any], changes: Mapping[int, dict[str, Any]] | None = None
) -> None:
    log = step_log(line)
    for number, change in (changes or {}).items():
        log["steps"][number - 1] |= change
    file = folder / "steps" / slug(line["condition"]) / f"{slug(line['task'])}.json.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(json.dumps(log).encode(), mtime=0))


def step_log(line: dict[str, Any]) -> dict[str, Any]:
    """Steps that look for a mug, differ between conditions from the third on, and end nastily."""
    messages = [SYSTEM]
    steps = []
    for number in range(1, line["steps"] + 1):
        seen = f"You arrive at shelf {number}. On the shelf {number}, you see a vase {number}."
        messages.append(f"{line['goal']} Step {number}. {seen}")
        place = number if number < 3 else f"{number}{line['condition'][0]}"
        action = f"go to shelf {place}"
        last = number == line["steps"]
        steps.append({
            "step": number, "observation": seen,
            "belief": {**empty_belief(),
                "location": f"shelf {number}", "reachable": [], "spots": {},
                "holding": ["mug 1"] if number > 3 else [],
                "containers": {"fridge 1": "closed", "microwave 1": "open"},
                "last_seen": {f"vase {i}": f"shelf {i}" for i in range(1, number + 1)},
                "places": [f"shelf {i}" for i in range(1, 13)], "searched": ["shelf 1"],
                "visible": [], "flags": {}, "progress": 0,
            },
            "sub_goal": {"name": "find_object", "target": "mug", "progress": 20},
            "state_lines": [f"You are at shelf {number}.", "Your hands are empty."],
            "rules": rules(line["condition"], number),
            "recalls": recalls(line["condition"]),
            "prompt": [["system", 0], ["user", number]],
            "knowledge_tokens": 0 if line["condition"] == "A" else 900,
            "reply": f"Thought: look on.\nAction: {action}",
            "thought": NASTY if last else "look on.", "action": action,
            "result": NASTY if last else "Nothing happens." if number == 2 else "You arrive.",
            "failed": number == 2, "truth": {
                "location": f"shelf {number}", "holding": "nothing", "open": "microwave 1",
            },
            "belief_errors": ["holding: the belief says mug 1"] if number == 4 else [],
            "usage": {"prompt_tokens": 1000, "cached_tokens": 400, "output_tokens": 20},
            "seconds": 0.1,
        })  # fmt: skip
    return {"task": line["task"], "condition": line["condition"], "messages": messages,
            "steps": steps}  # fmt: skip


def rules(condition: str, number: int) -> dict[str, Any]:
    if condition[0] in "ASC":
        return {"universal": [], "domain": [], "environment": [], "situation": []}
    situation = [{"id": "S-002", "text": f"Your hands are empty at shelf {number}."}]
    return {"universal": ["U-STATE-003"], "domain": ["D-HEAT-001"], "environment": ["E-ACT-005"],
            "situation": situation}  # fmt: skip


def recalls(condition: str) -> list[Recall]:
    if condition[0] in "ASB":
        return []
    path, put = ["go to fridge 1", "take mug 1 from it"], "put mug 1 in/on microwave 1"
    entry = {"id": "m1", "type": "success", "actions": path, "goal_signature": "pick:mug:shelf"}
    lesson = {"id": "m2", "type": "failure", "failed_action": put,
              "corrective_rule": "open it first"}  # fmt: skip
    steps, step = new_advice(path), new_advice([put])
    marked: Recall = {**new_recall(entry, 0.9, 1, steps), "conflict": "in doubt",
              "warning": "it may be closed", "rule": "E-ACT-005"}  # fmt: skip
    unfit = drop(new_recall(lesson, 0.8, 1, step), "scf", "the hand is full")
    wrong: Recall = {**new_recall(entry, 0.7, 1, steps), "conflict": "forbidden"}
    removed = drop(wrong, "arbitration", "forbidden by the manual", "D-HEAT-001")
    return [marked, unfit, removed]


def analysis_of(run: Run, episode: Episode) -> Analysis:
    """The figures of one episode, by its log as it lies on disk."""
    return read_analyses(run)[[*run.episodes.values()].index(episode)]


def short_plan(conditions: str = "A", limit: int = 2, **settings: Any) -> RunPlan:
    """Some generated homes under conditions by their letters."""
    contexts = condition_contexts(list(conditions), RunContext(**settings))
    return make_plan("alfworld", "generated_unseen", contexts, limit)


def play_short(
    plan: RunPlan,
    folder: Path,
    pool: Pool | int = 0,
    capacity: int = 4,
    watch: Watch = lambda progress: None,
    budget: Budget = NO_LIMIT,
) -> RunSession:
    """A session on a run folder, in this process or in as many others."""
    run = RunSession(plan, folder, budget=budget)
    try:
        workers = local_pool(plan, pool, run.meter) if isinstance(pool, int) else pool
        with cached_replies(plan.cache):
            run.play(workers, capacity, capacity * workers.size, watch)
    finally:
        run.close()
    return run


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """What a run has written so far, in whole lines."""
    file = folder / "episodes.jsonl"
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def keys_of(folder: Path) -> list[tuple[str, str]]:
    return [(line["condition"], line["task"]) for line in lines_of(folder)]


def histories_of(folder: Path) -> dict[tuple[str, str], list[str]]:
    return {
        (line["condition"], line["task"]): [turn["action"] for turn in line["history"]]
        for line in lines_of(folder)
    }
