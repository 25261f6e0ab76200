"""``rpms rules audit``: tables of how true a manual is, and how often it is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rpms.console import Console
from rpms.envs import Environment
from rpms.evals.tables import NONE, Cell, Table, count, percent
from rpms.manual_curve import curve_svg
from rpms.nodes.manual import load_manual
from rpms.rule_learning.campaign import explore
from rpms.rule_learning.predictions import Asked, Predictions
from rpms.rule_learning.truths import Compared, Truths
from rpms.showing import say
from rpms.terminal_tables import print_rows
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_folder, write_whole

STEPS = 400
"""Commands per game."""
SHARES = ("preconditions true", "demands found", "effects true", "effects found",
          "possible", "impossible", "left open")  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """What a manual is judged on.

    Attributes:
        env: the world.
        split: the list of games; none that was learned from.
        games: how many of them.
        seed: of the play.
        only: names of the actions that count; all if empty.
    """

    env: Environment
    split: str
    games: int
    seed: int = 0
    only: tuple[str, ...] = ()


def audit_manual(trial: Trial, folder: Path | None) -> None:
    """Print everything about one manual."""
    ((truths, said),) = _judge(trial, [folder])
    if trial.only and not said.actions:
        told = ", ".join(trial.only)
        raise RpmsError(f"--only {told}: nothing of that name was tried; leave it out to see all")
    say(f"{folder or trial.env.rules} in {trial.games} games of {trial.split}")
    if truths is None:
        say("this world's own rules cannot be read: only predictions are judged")
    else:
        _print_truths(truths)
    _print_predictions(said)


def audit_curve(trial: Trial, folder: Path) -> None:
    """One line for what was known after each number of homes, and for the whole; and a drawing."""
    kept = (folder / "after").glob("*") if is_folder(folder / "after") else ()
    after = sorted((int(one.name), one) for one in kept if one.name.isdecimal() and one.is_dir())
    if not after:
        raise RpmsError(f"{folder}/after: nothing was kept there; learn with --explore first")
    rows = [*((str(number), path) for number, path in after), ("all", folder)]
    judged = _judge(trial, [path for _, path in rows])
    known = [_shares(truths, said) for truths, said in judged]
    shares = [[Cell(name), *(percent(one.get(share)) for share in SHARES)]
              for (name, _), one in zip(rows, known, strict=True)]  # fmt: skip
    _print(["homes", *SHARES], shares)
    drawn = {name: [shares[name] for shares in known] for name in SHARES if name in known[0]}
    file = folder / "curve.svg"
    write_whole(file, curve_svg([label for label, _ in rows], drawn))
    say(f"drawn in {file}")


def _shares(truths: Truths | None, said: Predictions) -> dict[str, float]:
    """By column; without truths only the predictions."""
    true = (
        (truths.precision, truths.recall, truths.effect_precision, truths.effect_recall)
        if truths
        else ()
    )
    return {
        **dict(zip(SHARES[:4], true, strict=False)),
        **dict(zip(SHARES[4:], said.rates(), strict=True)),
    }


def _judge(trial: Trial, folders: Sequence[Path | None]) -> list[tuple[Truths | None, Predictions]]:
    """All manuals watch the same play."""
    env = trial.env
    manuals = [load_manual(env.name, str(folder or "")) for folder in folders]
    compared = [Compared(env, manual, trial.seed) for manual in manuals]
    asked = [Asked(manual, trial.only) for manual in manuals]
    tasks = env.tasks(trial.split, trial.games)
    explore(env, tasks, trial.seed, steps=STEPS, watchers=[*compared, *asked])
    return [(c.result(), a.found) for c, a in zip(compared, asked, strict=True)]


def _print_truths(truths: Truths) -> None:
    told = {
        name: {
            "preconditions true": (one.preconditions, one.false),
            "demands found": (one.demands, one.missed),
            "effects true": (one.effects, one.wrong_effects),
            "effects found": (one.true_effects, one.missed_effects),
        }
        for name, one in truths.actions.items()
    }
    rows = [[Cell(name), *(Cell(f"{len(a) - len(b)}/{len(a)}") for a, b in each.values())]
            for name, each in told.items()]  # fmt: skip
    _print(["action", *SHARES[:4]], rows)
    for name, one in truths.actions.items():
        for text, example in one.false.items():
            say(f"{name}: false: {text}: '{example}' was possible without it")
        for text, example in one.missed.items():
            say(f"{name}: missed: {text}: '{example}'")
        for text, example in one.wrong_effects.items():
            say(f"{name}: not an effect: {text}: '{example}'")
        for text in one.missed_effects:
            why = ", which no belief shows" if text in one.hidden else ""
            say(f"{name}: missed effect: {text}{why}")
    say(
        f"preconditions: precision {truths.precision:.3f}, recall {truths.recall:.3f}\n"
        f"effects: precision {truths.effect_precision:.3f}, recall {truths.effect_recall:.3f}"
    )


def _print_predictions(said: Predictions) -> None:
    rows = []
    for name in (*said.actions, ""):
        rates = said.rates(name)
        worked, failed, mistaken, refused, lucky, vain = (
            said.count(what, did, name) for what in (True, False, None) for did in (True, False)
        )
        rows.append([
            Cell(name or "all"),
            count(worked + failed), _rate(rates.possible, worked + failed),
            count(mistaken + refused), _rate(rates.impossible, mistaken + refused),
            Cell(f"{lucky + vain}", f"({rates.open:.1%})"), count(lucky),
        ])  # fmt: skip
    heads = ["called possible", "worked", "called impossible", "refused", "left open",
             "of which worked"]  # fmt: skip
    _print(["action", *heads], rows, total=True)


def _rate(share: float, of: int) -> Cell:
    return Cell(f"{share:.2%}" if of else NONE)


def _print(columns: Sequence[str], rows: Sequence[Sequence[Cell]], total: bool = False) -> None:
    console = Console(highlight=False)
    console.print()
    print_rows(console, Table("", "", "", columns, rows, total=total))
    console.print()
