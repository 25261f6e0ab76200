"""``rpms learn``: from episodes to a frozen snapshot, with progress and nothing lost."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from rpms.envs import get_environment
from rpms.evals.learning import learn
from rpms.evals.manifest import commit
from rpms.evals.records import EpisodeRecord, read_records
from rpms.evals.rounds import play_round
from rpms.memory_store import write_snapshot
from rpms.models import open_model
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import ERRORS


def learn_rounds(
    out: str,
    env: str,
    split: str,
    model: str,
    rounds: int,
    count: int | None,
    runs: str,
    base_url: str,
) -> None:
    """Rounds 1..N; each ends with a snapshot of everything learned so far."""
    if rounds < 1:
        raise RpmsError("--rounds must be at least 1")
    target, folder = Path(out), Path(runs)
    if folder.exists() and any(folder.iterdir()):
        raise RpmsError(
            f"{folder} already holds runs; learn from them with --from-runs {folder}, or give "
            "another --runs folder"
        )
    world = get_environment(env)
    split = split or world.learning_split
    context = RunContext(model=model, base_url=base_url)
    open_model(model, max_tokens=world.max_tokens, base_url=base_url)
    total = len(world.tasks(split, count))
    console = Console(stderr=True)
    records: list[EpisodeRecord] = []
    for number in range(1, rounds + 1):
        with Progress(console=console) as progress:
            bar = progress.add_task(f"round {number}", total=total)
            won = 0
            for result, record in play_round(
                number, env=env, split=split, count=count, base=context, folder=folder
            ):
                if result["failure_mode"] in ERRORS:
                    raise RpmsError(f"{result['task_id']}: {result['error']}")
                records.append(record)  # type: ignore[arg-type]
                won += result["success"]
                progress.update(bar, advance=1, description=f"round {number}: {won} won")
        source = f"{model}, {env} {split}, {total} tasks, rounds 1-{number}, commit {commit()}"
        _write(target, env, records, source, number)
        if rounds > 1:
            _write(target.with_suffix(f".round{number}.jsonl"), env, records, source, number)


def learn_from_folder(runs: str, out: str, env: str) -> None:
    """Learn from episodes that were recorded before."""
    records = [record for record in read_records(Path(runs)) if record["env"] == env]
    if not records:
        raise RpmsError(f"{runs} holds no episodes of {env}")
    _write(Path(out), env, records, f"runs in {Path(runs).name}", 0)


def _write(target: Path, env: str, records: list[EpisodeRecord], source: str, rounds: int) -> None:
    header = write_snapshot(target, env, learn(records), [source], rounds)
    counts = ", ".join(f"{count} {name}" for name, count in header.counts.items())
    print(f"{target}: {header.entries} entries ({counts}) from {len(records)} episodes")
