"""``rpms rules learn``: from what a world answered to a Tier 3 file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rpms.envs import Environment
from rpms.evals.experience import find_runs, is_learning_split
from rpms.evals.records import read_records
from rpms.nodes.manual import load_manual
from rpms.rule_learning.campaign import STEPS, explore
from rpms.rule_learning.domain import learned_domain, write_domain
from rpms.rule_learning.hypotheses import Hypotheses
from rpms.rule_learning.revising import revise
from rpms.rule_learning.transitions import Experience, Transition, replay
from rpms.rule_learning.writing import beside, tier_of, write_evidence, write_tier
from rpms.rules.audit import audit
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.record import EpisodeRecord

KEPT = (1, 2, 5, 10, 20, 50, 100, 200)
"""After so many homes what is known then is kept, to see what was learned when."""


@dataclass(frozen=True)
class Study:
    """What is learned from, and where it goes.

    Attributes:
        env: the world.
        out: the folder for the manual.
        seed: of the exploration.
        steps: commands per home; 0: as usual.
    """

    env: Environment
    out: Path
    seed: int = 0
    steps: int = 0


def learn_by_exploring(study: Study, homes: int) -> None:
    """Play homes of the learning split, then write down what their answers support."""
    env = study.env
    tasks = env.tasks(env.learning_split, homes) if homes > 0 else []
    if not tasks:
        raise RpmsError(f"--explore {homes}: there is no home to explore; ask for at least 1")
    so_far: list[Experience] = []

    def report(number: int, experience: Experience) -> None:
        so_far[:] = [experience]
        rules = Hypotheses(experience)
        played = sum(sum(one.uses.values()) for one in experience.evidence.values())
        print(f"home {number}/{len(tasks)}: {played} commands, {describe(rules)}", flush=True)
        if number in KEPT and number < len(tasks):
            _write(study, rules, study.out / "after" / str(number), f"{number} homes")

    try:
        explore(env, tasks, study.seed, report, study.steps or STEPS)
    except KeyboardInterrupt:
        if not so_far:
            raise
        print("interrupted: what was learned so far is written down")
    told = f"{len(tasks)} homes of {env.learning_split}, seed {study.seed}"
    _write(study, Hypotheses(so_far[0]), study.out, told)
    _check(study)


def learn_from_runs(
    study: Study, runs: Path, revising: Path | None, revised: bool, domain: bool = False
) -> None:
    """Learn from the recorded episodes of runs, or correct a manual by them.

    Args:
        study: the world and the folder to write.
        runs: a run folder, or a folder of them.
        revising: the folder with the Tier 3 to correct; None for the world's own.
        revised: whether to correct it, instead of learning from nothing.
        domain: also learn orders of sub-goals and likely places, for Tier 2.
    """
    env = study.env
    records = _records(env, runs)
    episodes = [list(_transitions(env, record)) for record in records]
    told = f"{len(episodes)} recorded episodes"
    if domain:
        won = sum(record["success"] for record in records)
        if not won:
            raise RpmsError(f"{runs}: no won episode to learn the order of sub-goals from")
        tier2 = learned_domain(records)
        head = f"Tier 2 of {env.name}, learned from {told}, {won} of them won."
        places = len(tier2["likely_places"])
        print(f"{write_domain(study.out, tier2, head)}: {places} kinds of things with their places")
    if not revised:
        experience = Experience(env.command_templates())
        experience.doubts = any(one.after["reachable"] for ep in episodes for one in ep)
        for episode in episodes:
            for one in episode:
                before = experience.look_at(one.before)
                experience.note(one.action, before, one.after, one.worked)
            if episode:
                experience.note_spots(episode[-1].after)
        print(f"{told}: {describe(Hypotheses(experience))}")
        _write(study, Hypotheses(experience), study.out, told)
    else:
        manual = load_manual(env.name, str(revising or ""))
        tier, corrections = revise(manual, [one for episode in episodes for one in episode])
        for line in corrections:
            print(line)
        print(f"{told}: {len(corrections)} corrections")
        write_tier(study.out, tier, f"Tier 3 of {env.name}, revised by {told}.")
    _check(study)


def _records(env: Environment, runs: Path) -> list[EpisodeRecord]:
    found: list[EpisodeRecord] = []
    for run in find_runs(runs, env.name):
        split = run.manifest.split
        if not is_learning_split(env.name, split):
            raise RpmsError(
                f"{run.folder}: its tasks ({split}) are for judging, not for learning; "
                f"take runs of {env.learning_split}"
            )
        found += read_records(run, run.conditions)
    return found


def _transitions(env: Environment, record: EpisodeRecord) -> Iterator[Transition]:
    turns = ((t["action"], t["observation"], t["failed"]) for t in record["history"])
    yield from replay(env, record["first_observation"], turns)


def describe(rules: Hypotheses) -> str:
    """How far it is: actions seen to work, conditions, what is unexplained."""
    found = rules.rules.values()
    kept = sum(len(rule.kept) + len(rule.ways) + len(rule.tables.single) + bool(rule.tables.pair)
               for rule in found)  # fmt: skip
    odd = sum(rule.unexplained for rule in found)
    known = f"{len(rules.rules)} of {len(rules.experience.templates)} actions seen to work"
    return f"{known}, {kept} conditions, {odd} refusals unexplained"


def _write(study: Study, rules: Hypotheses, folder: Path, source: str) -> None:
    head = f"Tier 3 of {study.env.name}, learned from {source}.\nevidence.json has the counts."
    shipped = load_manual(study.env.name).actions
    write_tier(folder, beside(tier_of(rules), shipped), head)
    write_evidence(folder, rules)


def _check(study: Study) -> None:
    env = study.env
    found = audit(env.rules, env.goal_types(), env.command_verbs(), over=study.out)
    for finding in found:
        print(finding)
    print(f"{study.out}: {len(found)} problems")
