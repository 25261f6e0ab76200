"""``rpms learn``: learns a memory from episodes and writes it as a snapshot.

The paper collects experience under Rules-only on seen tasks, each round an ordinary run. Episodes
of another condition, of a guarded agent or of test tasks need the user's permission with a reason,
which is kept in the snapshot's header.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.messages.ai import UsageMetadata

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.envs.registry import FIRST_WORLD
from rpms.evals.records.run_folder import MANIFEST, Run, read_records, read_run
from rpms.evals.running.costs import NO_COST, Meter, Tokens, Total, cost_of, spent_before
from rpms.evals.running.evaluate import DEFAULT_EXECUTION, ExecutionOptions, play_plan
from rpms.evals.running.learning_data import (
    chosen_conditions,
    is_learning_split,
    learning_splits,
)
from rpms.evals.running.plan import make_plan
from rpms.memory_store import Header, read_header
from rpms.memory_store.methods import (
    Learned,
    MemoryMethod,
    Origin,
    Writer,
    can_write,
    find_method,
)
from rpms.memory_store.methods.registry import takes_manual
from rpms.memory_store.snapshot import OUR_METHOD
from rpms.models.prices import rates_for
from rpms.models.reply_cache import cached_replies
from rpms.rules import Manual
from rpms.vocabulary.context import RunContext, condition_name
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_folder, refuse_special
from rpms.vocabulary.output import print_wrapped, quantity
from rpms.vocabulary.turn import EpisodeRecord

T = TypeVar("T")

# Greedy decoding repeats itself, so later rounds sample to get new experience.
LATER_TEMPERATURE = 0.7
RULES_ONLY = "B"


def round_context(base: RunContext, number: int, condition: str = RULES_ONLY) -> RunContext:
    """The settings of a round: Rules-only by default, with the round's seed."""
    temperature = base.temperature if number == 1 else max(base.temperature, LATER_TEMPERATURE)
    seed = base.seed + number - 1
    return base.under(condition).with_(temperature=temperature, seed=seed)


@dataclass(frozen=True)
class Experience:
    """Episodes to learn from.

    Attributes:
        records: the episodes without an error.
        sources: descriptions of their runs.
        agents: the models or policies that acted in them.
        rounds: the number of rounds over the tasks.
        failed: the episodes that ended in an error, each with its error.
        damaged: the number of lines that could not be read.
    """

    records: list[EpisodeRecord]
    sources: list[str]
    agents: list[str]
    rounds: int
    failed: list[str] = field(default_factory=list)
    damaged: int = 0


def find_runs(folder: Path, env: str, split: str = "") -> list[Run]:
    """Every run of an environment, or of one of its splits, in a folder or below it."""
    files = sorted(folder.rglob(MANIFEST)) if is_folder(folder) else []
    if not files:
        raise RpmsError(
            f"no {MANIFEST} in {folder}; give a folder that 'rpms eval' or 'rpms learn' wrote"
        )
    every = [read_run(file.parent) for file in files]
    runs = [r for r in every if r.manifest.env == env and split in ("", r.manifest.split)]
    if not any(run.episodes for run in runs):
        worlds = ", ".join(sorted({run.manifest.env for run in every if run.episodes} - {env}))
        hint = f"; it has episodes of {worlds}: give --env" if worlds else ""
        raise RpmsError(f"{folder} holds no episodes of {f'{env} {split}'.rstrip()}{hint}")
    return runs


def gather(runs: Sequence[Run], condition: str = "", allowed: str = "") -> Experience:
    """The experience of runs of one environment; ``allowed`` is the reason for other conditions."""
    records: list[EpisodeRecord] = []
    failed: list[str] = []
    # Runs of the same origin are rounds: for each the numbers of learned and planned episodes.
    rounds: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    agents: set[str] = set()
    for run in runs:
        for label in chosen_conditions(run, [condition] if condition else []):
            departures = list(unusual(run.manifest.env, run.manifest.split, run.settings(label)))
            if (agent := _agent_of(run, label)) != run.model(label):
                departures.append("played by code, not by a model")
            if departures and not allowed:
                where = f"{run.folder}, condition {label}"
                raise RpmsError(_refusal(run.manifest.env, where, departures))
            learned = read_records(run, [label])
            records += learned
            failed += [
                f"{episode.task}: {episode.error}"
                for episode in run.played(label)
                if episode.is_error
            ]
            origin = (*_origin(run, label), *departures)
            rounds[origin].append((len(learned), len(run.manifest.tasks)))
            agents.add(agent)
    if not records:
        raise RpmsError(
            f"no episode to learn from in {', '.join(str(run.folder) for run in runs)}"
            + (f"; the first error was {failed[0]}" if failed else "")
        )
    sources = [_source(origin, counts, allowed) for origin, counts in rounds.items()]
    most_rounds, damaged = max(map(len, rounds.values())), sum(len(run.damaged) for run in runs)
    return Experience(records, sources, sorted(agents), most_rounds, failed, damaged)


def _agent_of(run: Run, label: str) -> str:
    """The model that chose the actions, or the custom stage that did so instead."""
    swapped = run.manifest.swapped.get(label, {})
    code = (code["path"] for stages, code in swapped.items() if "llm_call" in stages)
    return next(code, run.model(label))


def unusual(env: str, split: str, context: Mapping[str, Any]) -> Iterator[str]:
    """The differences from the paper's learning phase; none for Rules-only on a learning split."""
    if not is_learning_split(env, split):
        is_test = split in get_environment(env).judging
        yield "a test split" if is_test else "not a learning split"
    if not context.get("rules"):
        yield "without rules"
    if context.get("memory"):
        yield "with memory"
    if (guard := context.get("guard", "off")) != "off":
        yield f"guard {guard}"


def check_usual(env: str, split: str, context: Mapping[str, Any], allowed: str) -> None:
    """Raise an error before episodes are run that could not be learned from."""
    if not allowed and (departures := list(unusual(env, split, context))):
        raise RpmsError(_refusal(env, f"{env} {split}", departures))


def _refusal(env: str, subject: str, departures: Sequence[str]) -> str:
    return (
        f"{subject}: {', '.join(departures)}. Memory is learned under Rules-only (condition B, no "
        f"guard) on a learning split ({', '.join(learning_splits(env))}); choose with --condition "
        'and --split, or give --allow "REASON", which is kept in the memory\'s header'
    )


def _origin(run: Run, label: str) -> tuple[str, ...]:
    """The model, split, tasks, condition and commit of an arm; another manual is named."""
    manifest, context = run.manifest, run.settings(label)
    changes = {"rules": context.get("rules_dir"), "without": context.get("without_rules")}
    rules = "".join(f" {word} {value}" for word, value in changes.items() if value)
    where, tasks = f"{manifest.env} {manifest.split}", f"{len(manifest.tasks)} tasks"
    condition, commit = f"condition {label}{rules}", f"commit {manifest.commits}"
    return _agent_of(run, label), where, tasks, condition, commit


def _source(origin: Sequence[str], rounds: Sequence[tuple[int, int]], allowed: str) -> str:
    model, where, tasks, condition, commit, *departures = origin
    parts = [model, where, tasks, f"{quantity(len(rounds), 'round')} of {condition}"]
    learned, planned = map(sum, zip(*rounds, strict=True))
    if learned < planned:
        parts.append(f"{learned} of {planned} episodes")
    if departures:
        parts.append(f"{', '.join(departures)} (allowed: {' '.join(allowed.split())})")
    return ", ".join([*parts, commit])


LISTED = 5
"""The maximal number of failed episodes that are printed."""


def learn(
    out: str | PathLike[str],
    *,
    env: str = FIRST_WORLD,
    split: str = "",
    context: RunContext | None = None,
    method: str = OUR_METHOD,
    rounds: int = 1,
    limit: int = 0,
    spread: bool = False,
    from_runs: str | PathLike[str] = "",
    condition: str = "",
    allow: str = "",
    without_manual: bool = False,
    execution: ExecutionOptions = DEFAULT_EXECUTION,
    cache: str = "",
    show: bool = True,
) -> Header:
    """Learn a memory and write it; called again, it resumes.

    Args:
        out: the memory file to write.
        env: the environment.
        split: the split; by default the environment's learning split.
        context: the model, its decoding and the rules.
        method: the memory method.
        rounds: the number of rounds over the tasks.
        limit: the number of tasks; 0 for all.
        spread: with ``limit``, a sample of the whole split, stratified over its task types.
        from_runs: learn from the runs in this folder instead of running episodes.
        condition: the condition to run, or to take from runs; by default Rules-only.
        allow: the reason to learn from other conditions or test splits.
        without_manual: extract memories without consulting the rule manual.
        execution: worker processes, concurrency, and the budget of all rounds and of the texts that
            a model writes.
        cache: a file of cached replies, which is made if needed; empty for none.
        show: print progress.
    """
    if not fspath(out):
        raise RpmsError("no memory file given; give the file to write as out")
    target, base, memory_method = Path(out), context or RunContext(), find_method(method)
    refuse_special(target)
    _check_writer(memory_method, env, base)
    # A mistake in the manual is reported before the first episode.
    manual = (
        load_manual(env, syntax_only=True)
        if without_manual
        else load_manual(env, base.rules_dir, base.without_rules)
    )
    budget = execution.budget
    budget.check(base.model, base.base_url)
    if from_runs:
        experience = gather(find_runs(Path(from_runs), env, split), condition, allow)
        with cached_replies(cache):
            _write([target], memory_method, env, base, experience, manual, Meter(budget), show)
        if failed := _print_failed(experience):
            episodes = f"{quantity(failed, 'episode')} that ended in an error"
            print_wrapped(f"rpms: left out: {episodes}", file=sys.stderr)
        return read_header(target)
    if rounds < 1:
        raise RpmsError("--rounds must be at least 1")
    split = split or get_environment(env).learning_split
    base.under(condition or RULES_ONLY)  # an error quotes the condition as typed
    label = condition_name(condition or RULES_ONLY)
    check_usual(env, split, round_context(base, 1, label).plain, allow)
    # Every round has its own run folder, so that finished episodes are not run again.
    root = Path(f"{fspath(out)}.runs")
    folders = [root / f"round{number}" for number in range(1, rounds + 1)]
    for number, folder in enumerate(folders, start=1):
        contexts = {label: round_context(base, number, label)}
        plan = make_plan(env, split, contexts, limit, spread=spread, cache=cache)
        others = _cost_of(other for other in folders if other != folder)
        play_plan(plan, str(folder), execution, show=show, strict=False, elsewhere=others)
        experience = gather([read_run(each) for each in folders[:number]], allowed=allow)
        # The default method writes a snapshot after each of several rounds; other methods learn
        # once, at the end.
        each = rounds > 1 and memory_method.name == OUR_METHOD
        targets = [target.with_suffix(f".round{number}.jsonl")] if each else []
        targets += [target] if number == rounds else []
        meter = Meter(budget, _cost_of(folders))
        with cached_replies(cache):
            _write(targets, memory_method, env, base, experience, manual, meter, show)
    if failed := _print_failed(experience):
        raise RpmsError(
            f"{quantity(failed, 'episode')} ended in an error; the memory is learned from the "
            "others. Run the same command again to repeat them"
        )
    return read_header(target)


def _cost_of(folders: Iterable[Path]) -> Total:
    """What the runs in those of the folders that have one have cost."""
    cost = NO_COST
    for run in (read_run(folder) for folder in folders if (folder / MANIFEST).exists()):
        cost = cost.plus(spent_before(run.episodes.values(), run.manifest.sessions))
    return cost


class MeteredWriter(Writer):
    """A writer that keeps to a budget."""

    def __init__(self, env: str, context: RunContext, method: str, meter: Meter):
        super().__init__(env, context, method)
        self._meter, self._rates = meter, rates_for(context.model, context.base_url)

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        self._meter.stop_if_spent()
        return await super().run(call)

    def count(self, usage: UsageMetadata | None) -> None:
        before = Tokens.of(self.spent)
        super().count(usage)
        spent = Tokens.of(self.spent).plus(before, -1)
        self._meter.add(spent, cost_of(spent, self._rates))


def _check_writer(method: MemoryMethod, env: str, base: RunContext) -> None:
    """Raise an error before the first episode if the memory could not be written."""
    if not method.learns:
        raise RpmsError(
            f"memory method '{method.name}' has no memory file: it learns from earlier trials of "
            "the same task; use it with 'rpms eval --trials'"
        )
    if method.needs_model:
        Writer(env, base, method.name)


def _write(
    targets: Sequence[Path], method: MemoryMethod, env: str, base: RunContext,
    experience: Experience, manual: Manual, meter: Meter, show: bool,
) -> None:  # fmt: skip
    if not targets:
        return
    learned, writer = asyncio.run(_learn(method, env, base, experience, manual, meter))
    credit = _credit(method, writer)
    sources = [f"{source}{credit}" for source in experience.sources]
    origin = Origin(sources, experience.agents, experience.rounds, writer)
    for target in targets:
        header = method.save(target, env, learned, origin)
        counts = ", ".join(f"{count} {name}" for name, count in header.counts.items())
        if show:
            episodes = quantity(len(experience.records), "episode")
            entries = quantity(header.entries, "entry")
            print_wrapped(f"{target}: {entries} ({counts}) from {episodes}{credit}")
    if learned.unread:
        parts = quantity(learned.unread, "part")
        print_wrapped(
            f"rpms: left out: {parts} of {writer}'s replies that could not be read",
            file=sys.stderr,
        )


def _credit(method: MemoryMethod, writer: str) -> str:
    """The method and the writer of a memory, for headers and cards; empty for the default."""
    if method.name == OUR_METHOD:
        return ""
    return f"; {method.title or method.name}, {f'written by {writer}' if writer else 'by rule'}"


async def _learn(
    method: MemoryMethod, env: str, base: RunContext, experience: Experience, manual: Manual,
    meter: Meter,
) -> tuple[Learned, str]:  # fmt: skip
    """The learned memory, and the model that wrote it; empty for none."""
    rules = {"manual": manual} if takes_manual(method.learn) else {}
    if not can_write(base.model):
        return await method.learn(experience.records, None, **rules), ""
    writer = MeteredWriter(env, base, method.name, meter)
    learned = await method.learn(experience.records, writer, **rules)
    return learned, base.model if writer.replies else ""


def _print_failed(experience: Experience) -> int:
    """Print episodes that ended in an error, and return their number."""
    if experience.damaged:
        lines = quantity(experience.damaged, "damaged line")
        print_wrapped(f"rpms: left out: {lines} of runs", file=sys.stderr)
    for failure in experience.failed[:LISTED]:
        print_wrapped(f"rpms: not learned from: {failure}", file=sys.stderr)
    return len(experience.failed)
