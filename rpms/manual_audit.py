"""``rpms rules audit``: tables of how true a manual is, and how often it is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rpms.envs import Environment
from rpms.manual_curve import curve_svg
from rpms.nodes.manual import load_manual
from rpms.rule_learning.campaign import explore
from rpms.rule_learning.predictions import Asked, Predictions
from rpms.rule_learning.truths import Compared, Truths
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.reading import is_folder
from rpms.vocabulary.writing import write_whole

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
    print(f"{folder or trial.env.rules} in {trial.games} games of {trial.split}")
    if truths is None:
        print("this world's own rules cannot be read: only predictions are judged")
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
    print(f"| homes | {' | '.join(SHARES)} |\n|---{'|---' * len(SHARES)}|")
    for (label, _), shares in zip(rows, known, strict=True):
        cells = (f"{shares[name]:.1%}" if name in shares else "-" for name in SHARES)
        print(f"| {label} | {' | '.join(cells)} |")
    drawn = {name: [shares[name] for shares in known] for name in SHARES if name in known[0]}
    file = folder / "curve.svg"
    write_whole(file, curve_svg([label for label, _ in rows], drawn))
    print(f"drawn in {file}")


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
    for name, one in truths.actions.items():
        told = {
            "preconditions true": (one.preconditions, one.false),
            "demands found": (one.demands, one.missed),
            "effects true": (one.effects, one.wrong_effects),
            "effects found": (one.true_effects, one.missed_effects),
        }
        shares = (f"{len(a) - len(b)}/{len(a)} {what}" for what, (a, b) in told.items())
        print(f"  {name}: {', '.join(shares)}")
        for text, example in one.false.items():
            print(f"    false: {text}: '{example}' was possible without it")
        for text, example in one.missed.items():
            print(f"    missed: {text}: '{example}'")
        for text, example in one.wrong_effects.items():
            print(f"    not an effect: {text}: '{example}'")
        for text in one.missed_effects:
            why = ", which no belief shows" if text in one.hidden else ""
            print(f"    missed effect: {text}{why}")
    print(
        f"preconditions: precision {truths.precision:.3f}, recall {truths.recall:.3f}; "
        f"effects: precision {truths.effect_precision:.3f}, recall {truths.effect_recall:.3f}"
    )


def _print_predictions(said: Predictions) -> None:
    for name in ("", *said.actions):
        rates = said.rates(name)
        worked, failed, mistaken, refused, lucky, vain = (
            said.count(what, did, name) for what in (True, False, None) for did in (True, False)
        )
        print(
            f"  {name or 'predictions'}: called possible {worked + failed}, of which worked "
            f"{rates.possible:.2%}; called impossible {mistaken + refused}, of which refused "
            f"{rates.impossible:.2%}; left open {lucky + vain} ({rates.open:.1%}), of which worked "
            f"{lucky}"
        )
