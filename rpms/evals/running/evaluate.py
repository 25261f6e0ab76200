"""``rpms.evaluate`` and ``rpms eval``: tasks of a split under several arms."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from os import PathLike, fspath
from pathlib import Path

from rpms.envs.manuals import load_manual
from rpms.envs.registry import FIRST_WORLD
from rpms.evals.analysis.report import Report, read_report
from rpms.evals.running.arms import Arm, Variant, as_variant, travelling
from rpms.evals.running.costs import NO_COST, NO_LIMIT, Budget, Total
from rpms.evals.running.learning_data import default_split
from rpms.evals.running.plan import RunPlan, make_plan
from rpms.evals.running.plan_file import USUAL, condition_contexts, read_plan
from rpms.evals.running.progress import (
    Watch,
    print_error_places,
    print_lines,
    results_text,
    show_bar,
    spending_text,
)
from rpms.evals.running.runner import RunSession, capacity_of, local_pool
from rpms.evals.running.workers import RayPool
from rpms.graph.compiled import GraphSource, open_graph
from rpms.memory_store.methods import check_memory, check_trials
from rpms.models.chat import open_chat
from rpms.models.local import is_local
from rpms.models.opening import LABELS, is_import_path
from rpms.models.reply_cache import cached_replies
from rpms.prompts.context_budget import prompt_room
from rpms.prompts.examples import check_prompts
from rpms.vocabulary.context import ABLATION, RunContext
from rpms.vocabulary.error_place import is_user_code
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.output import open_console, print_wrapped, quantity
from rpms.vocabulary.turn import ERRORS


@dataclass(frozen=True)
class ExecutionOptions:
    """Options of the execution of a run, which do not change its results.

    Attributes:
        workers: worker processes; 0 runs in this process, None takes one per processor.
        concurrency: episodes in flight over all workers.
        ray: the address of a Ray cluster; ``local`` starts one.
        budget: the budget of the run folder.
    """

    workers: int | None = None
    concurrency: int = 32
    ray: str = ""
    budget: Budget = NO_LIMIT

    def suited_to(self, plan: RunPlan) -> ExecutionOptions:
        """One episode at a time for a local model, which answers one request at a time.

        More episodes would only wait in its queue until their calls time out.
        """
        if not any(is_local(context.model) for context in plan.conditions.values()):
            return self
        workers = 1 if self.workers is None else min(self.workers, 1)
        return replace(self, workers=workers, concurrency=1)


DEFAULT_EXECUTION = ExecutionOptions()


def evaluate(
    arms: Mapping[str, Arm] | Sequence[str] = ABLATION,
    *,
    out: str | PathLike[str],
    env: str = FIRST_WORLD,
    split: str = "",
    limit: int = 0,
    spread: bool = False,
    tasks: Sequence[str] = (),
    types: Sequence[str] = (),
    trials: int = 1,
    repeats: int = 1,
    compare: Sequence[tuple[str, str]] = (),
    truth: bool = True,
    cache: str = "",
    execution: ExecutionOptions = DEFAULT_EXECUTION,
    show: bool = True,
    plan_name: str = "",
) -> Report:
    """Run tasks under several arms and return the report; called again, it resumes the run.

    Args:
        arms: conditions, settings, variants or graphs by label, or letters of conditions.
        out: the run folder. Finished episodes are not run again. A run can be extended with more
            tasks, arms, trials and repeats.
        env: the environment.
        split: the split; by default the environment's first test split.
        limit: the number of tasks; 0 for all.
        spread: with ``limit``, a sample of the whole split, stratified over its task types.
        tasks: only the tasks with these ids.
        types: only tasks of these goal types.
        trials: the maximal number of trials of a task, with cross-trial memory.
        repeats: the number of independent repeats, with different seeds.
        compare: the pairs of arms that the report tests, the one to compare with first. By default
            these are the pairs of the ablation. An arm in no pair is compared with the first one.
        truth: compare every belief with the simulator's true state.
        cache: a file of cached replies, which is made if needed; empty for none.
        execution: worker processes, concurrency and budget.
        show: print progress on standard error.
        plan_name: the plan that the arms and tasks come from, for the manifest.
    """
    if not fspath(out):
        raise RpmsError("no run folder given; give the folder of the run as out")
    if execution.workers != 0 or execution.ray:
        refuse_unguarded_script()
    variants = as_arms(arms)
    plan = make_plan(
        env,
        split or default_split(env),
        {label: variant.settings() for label, variant in variants.items()},
        limit,
        spread=spread,
        tasks=tasks,
        types=types,
        truth=truth,
        cache=cache,
        graphs={label: variant.graph for label, variant in variants.items() if variant.graph},
        trials=trials,
        repeats=repeats,
        compare=compare or read_plan(USUAL).compare,
        name=plan_name,
    )
    play_plan(plan, fspath(out), execution, show=show)
    return read_report(Path(out))


def refuse_unguarded_script() -> None:
    """Each worker process imports the script, and would run the evaluation again."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec and spec.name.endswith(".__main__"):  # python -m PACKAGE, which workers do not import
        return
    frame = inspect.currentframe()
    while frame and (frame.f_code.co_name, frame.f_globals.get("__name__")) != (
        "<module>",
        "__main__",
    ):
        frame = frame.f_back
    file = Path(frame.f_code.co_filename) if frame else None
    if frame is None or file is None or not file.is_file():
        return
    tree = ast.parse(file.read_bytes())
    guards = [node for node in tree.body if isinstance(node, ast.If)
              and "__name__" in ast.dump(node.test)]  # fmt: skip
    if not any(node.lineno <= frame.f_lineno <= (node.end_lineno or 0) for node in guards):
        raise RpmsError(
            f"{file.name}, line {frame.f_lineno}: worker processes import this script and would "
            "run it again. Put the call under 'if __name__ == \"__main__\":', or stay in one "
            "process: execution=rpms.ExecutionOptions(workers=0)"
        )


def as_arms(arms: Mapping[str, Arm] | Sequence[str]) -> dict[str, Variant]:
    """Every arm as a variant, by its label."""
    if isinstance(arms, Mapping):
        return {str(label): as_variant(arm) for label, arm in arms.items()}
    names = arms.split(",") if isinstance(arms, str) else arms
    contexts = condition_contexts([name.strip() for name in names], RunContext())
    return {label: Variant(context) for label, context in contexts.items()}


def play_plan(
    plan: RunPlan, out: str, execution: ExecutionOptions, show: bool = True, strict: bool = True,
    summary: bool = True, elsewhere: Total = NO_COST,
) -> None:  # fmt: skip
    """Run the remaining episodes of a plan; raises KeyboardInterrupt on Ctrl-C.

    ``elsewhere`` is what other folders have cost under the same budget.
    """
    execution = execution.suited_to(plan)
    check_plan(plan)
    at_once, workers = execution.concurrency, execution.workers
    # A worker that would never get an episode is not started.
    workers = min(os.cpu_count() or 1 if workers is None else workers, at_once)
    if workers or execution.ray:
        paths = {label: travelling(graph, label) for label, graph in plan.graphs.items()}
        plan = replace(plan, graphs=paths)
    capacity = capacity_of(plan.env, workers, at_once)
    run = RunSession(plan, Path(out), execution.budget, elsewhere)
    try:
        with cached_replies(plan.cache), _watched(run, out, show, strict, summary) as watch:
            ray = execution.ray
            pool = (
                RayPool(plan, max(workers, 1), ray) if ray else local_pool(plan, workers, run.meter)
            )
            run.play(pool, capacity, at_once, watch)
    finally:
        run.close()


@contextmanager
def _watched(run: RunSession, out: str, show: bool, strict: bool, summary: bool) -> Iterator[Watch]:
    """Show the progress of a run, and a summary at its end.

    Episodes that ended in an error are raised as an error at the end, if ``strict``.
    """
    console, progress, plan = open_console(stderr=True, quiet=not show), run.progress, run.plan
    notes = []
    if any(context.model == "sim" for context in plan.conditions.values()):
        notes.append("model: sim (built-in planner, no language model)")
    if warning := same_replies(plan):
        notes.append(warning)
    if progress.done:
        done = f"{progress.done} of {progress.total} episodes are finished already"
        notes.append(f"{out}: {done}")
    if run.code_changed:
        arms = ", ".join(run.code_changed)
        changed = f"the files with the code of {arms} have changed since the first episodes"
        notes.append(f"{out}: {changed}; the finished episodes stay")
    if run.types_missing:
        missing = f"task types of the split without a task: {run.types_missing}"
        notes.append(f"{out}: {missing}; --spread with enough tasks samples all types")
    if run.damaged:
        lines = quantity(run.damaged, "damaged line")
        notes.append(f"{out}: {lines} ignored; such episodes are run again")
    for note in notes if show else ():
        print_wrapped(note, sys.stderr)
    try:
        if console.is_terminal:
            with show_bar(console, progress) as watch:
                yield watch
        else:
            yield print_lines(console, progress)
    except KeyboardInterrupt:
        print_wrapped(
            f"rpms: stopped; {run.finished()} of {progress.total} episodes are finished "
            f"in {out}. Run the same command again to continue.",
            file=sys.stderr,
        )
        raise
    finally:
        if show:
            print_error_places(progress)
    if show and summary:
        results = results_text(progress)
        print_wrapped(f"{out}: {progress.done} of {progress.total} episodes; {results}")
        print_wrapped(f"{spending_text(progress)} in this session")
    if strict:
        _raise_errors(run, out)
    if show and summary:
        print_wrapped(f"next: rpms report {out}")


def same_replies(plan: RunPlan) -> str:
    """The arms of language models at temperature 0 that are the same but for their seeds, in words.

    The temperature of a custom model is its own.
    """
    alike: dict[tuple[RunContext, GraphSource], list[str]] = {}
    for label, context in plan.conditions.items():
        greedy = not context.temperature and context.model not in LABELS
        if greedy and not is_import_path(context.model):
            same = context.with_(seed=0), plan.graphs.get(label, "")
            alike.setdefault(same, []).append(label)
    repeated = [labels for labels in alike.values() if plan.repeats > 1 or len(labels) > 1]
    if not repeated:
        return ""
    return (
        f"temperature 0: with other seeds {', '.join(chain(*repeated))} give the same episodes "
        "again, but for chance in the server; --set temperature=0.7 samples"
    )


def _raise_errors(run: RunSession, out: str) -> None:
    history = run.progress.history
    failed = [end for end in history if end.mode in ERRORS]
    if failed:
        in_own_code = [end.place is not None and is_user_code(end.place["file"]) for end in failed]
        kind = "error in your own code" if in_own_code[0] else str(failed[0].mode).replace("_", " ")
        line = failed[0].line
        advice = (
            "Correct your code first: without a change these episodes fail again"
            if all(in_own_code)
            else "Run the same command again to repeat them"
        )
        stopped = ", ".join(run.progress.stopped)
        raise RpmsError(
            f"{len(failed)} of the {len(history)} episodes of this session ended in an error; the "
            f"first ({kind}{f' at {line}' if line else ''}): {failed[0].error}. "
            + (f"Stopped, because every episode failed at one line: {stopped}. " if stopped else "")
            + f"{advice}; 'rpms report {out}' reports the finished episodes"
        )


def check_plan(plan: RunPlan) -> None:
    """Raise an error for a wrong name, key or file before the first episode."""
    for label, context in plan.conditions.items():
        open_chat(plan.env, context)
        prompt_room(plan.env, context)
        load_manual(plan.env, context.rules_dir, context.without_rules)
        check_prompts(plan.env, context)
        check_memory(plan.env, context)
        if plan.trials > 1:
            check_trials(plan.env, context)
        if graph := plan.graphs.get(label):
            open_graph(graph)
