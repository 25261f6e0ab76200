"""``rpms eval``: a whole split under several conditions, watched while it runs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from rpms.envs import get_environment
from rpms.evals.budget import NO_LIMIT, Budget
from rpms.evals.plan import RunPlan, make_plan
from rpms.evals.pools import Pool
from rpms.evals.presets import letters, preset_contexts
from rpms.evals.progress import RunProgress
from rpms.evals.runner import Run, capacity_of, local_pool
from rpms.models.local import is_local
from rpms.models.response_cache import default_file
from rpms.nodes.chat import open_chat
from rpms.nodes.context import RunContext
from rpms.nodes.context_budget import prompt_room
from rpms.nodes.memories import check_memory
from rpms.vocabulary.errors import RpmsError


@dataclass(frozen=True)
class Effort:
    """How a run is carried out; none of this changes what comes out."""

    workers: int | None = None
    concurrency: int = 32
    ray: str = ""
    retry_failed: bool = False
    budget: Budget = NO_LIMIT

    def suited_to(self, model: str) -> Effort:
        """One episode at a time for a local model, which answers one request at a time.

        More of them would only wait in its queue until their calls time out.
        """
        if not is_local(model):
            return self
        workers = 1 if self.workers is None else min(self.workers, 1)
        return replace(self, workers=workers, concurrency=1)


def evaluate(
    env: str,
    split: str,
    out: str,
    *,
    base: RunContext,
    conditions: str,
    preset: str,
    limit: int,
    spread: bool,
    truth: bool,
    cache: bool,
    effort: Effort,
) -> None:
    """Run what is left of a plan and say how it stands; raises KeyboardInterrupt on Ctrl-C."""
    if conditions and preset:
        raise RpmsError("give either --conditions or --preset")
    if preset:
        contexts = preset_contexts(preset, base)
    else:
        wanted = [name.strip() for name in (conditions or "A,B,C,D").split(",")]
        contexts = letters(wanted, base)
    file = reply_file(base) if cache else ""
    split = split or get_environment(env).splits()[0]
    effort = effort.suited_to(base.model)
    plan = make_plan(env, split, contexts, limit, truth, cache=file, spread=spread)
    play_plan(plan, out, effort)


def reply_file(context: RunContext) -> str:
    """Where earlier replies are kept, if they are.

    Sampling asks for a new reply every time, and the planner is cheaper than the cache.
    """
    return "" if context.model == "sim" or context.temperature else str(default_file())


def play_plan(plan: RunPlan, out: str, effort: Effort) -> None:
    """Play what a run folder still lacks of a plan, behind a progress bar."""
    _check(plan)
    workers = effort.workers if effort.workers is not None else os.cpu_count() or 1
    capacity = capacity_of(plan.env, workers, effort.concurrency)
    run = Run(
        plan, Path(out), retry_failed=effort.retry_failed, budget=effort.budget,
        workers=workers, concurrency=effort.concurrency, ray=effort.ray,
    )  # fmt: skip
    try:
        _play(run, _pool(run, workers, effort.ray), capacity, out, metered=not effort.ray)
    finally:
        run.close()


def _check(plan: RunPlan) -> None:
    """A wrong name, key or file is an answer at once, not a folder full of failed episodes."""
    open_chat(plan.env, plan.context, plan.cache)
    prompt_room(plan.env, plan.context)
    for one in plan.conditions.values():
        check_memory(plan.env, one)


def _pool(run: Run, workers: int, ray: str) -> Pool:
    if not ray:
        return local_pool(run.plan, workers, run.meter)
    from rpms.evals.ray_backend import RayPool

    return RayPool(run.plan, max(workers, 1), ray)


def _play(run: Run, pool: Pool, capacity: int, out: str, metered: bool) -> None:
    console = Console(stderr=True)
    done = run.progress.done
    if done:
        console.print(f"{out}: {done} of {run.progress.total} episodes were finished before")
    try:
        with _bar(console) as bar:
            task = bar.add_task("starting", total=run.progress.total, completed=done, extra="")

            def watch(progress: RunProgress) -> None:
                bar.update(
                    task, completed=progress.done, description=standings(progress),
                    extra=spending(progress),
                )  # fmt: skip

            run.play(pool, capacity, watch, metered)
    except KeyboardInterrupt:
        print(
            f"rpms: stopped; {run.finished()} of {run.progress.total} episodes are finished "
            f"in {out}. Run the same command again to go on.",
            file=sys.stderr,
        )
        raise
    print(f"{out}: {run.progress.done} of {run.progress.total} episodes; {standings(run.progress)}")
    print(f"{spending(run.progress)} in this session")


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[extra]}"),
        console=console,
    )


def standings(progress: RunProgress) -> str:
    """Success so far per condition, errors apart."""
    parts = []
    for label, standing in sorted(progress.standings.items()):
        errors = f" ({standing.errors} errors)" if standing.errors else ""
        parts.append(f"{label} {standing.wins}/{standing.played}{errors}")
    return ", ".join(parts) or "starting"


def spending(progress: RunProgress) -> str:
    """Tokens, cost where something is paid, and replies that cost nothing."""
    text = f"{progress.spent_tokens:,} tokens"
    if progress.cost_usd:
        text += f", ${progress.cost_usd:.4f}"
    if progress.expected_usd:
        text += f" of about ${progress.expected_usd:.2f}"
    return f"{text}, {progress.cache_hits:,} cached replies" if progress.cache_hits else text
