"""``rpms rules learn``: from what a world answered to a Tier 3 file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rpms.envs import Environment
from rpms.evals.learn import find_runs, is_learning_split
from rpms.evals.run_folder import read_records
from rpms.nodes.manual import load_manual
from rpms.rule_learning.evidence import Experience
from rpms.rule_learning.explore import STEPS, explore
from rpms.rule_learning.induction import Hypotheses
from rpms.rule_learning.tier_file import beside, tier_of, write_evidence, write_tier
from rpms.rules.audit import audit
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import EpisodeRecord

Report = Callable[[str], None]


@dataclass(frozen=True)
class Study:
    """What is learned about, and where it goes.

    Attributes:
        env: the world.
        out: the folder for the manual.
        report: is given a line now and then.
    """

    env: Environment
    out: Path
    report: Report = print


def learn_by_exploring(study: Study, homes: int, seed: int = 0, steps: int = 0) -> None:
    """Play homes of the learning split, then write down what their answers support.

    ``steps`` are commands per home; 0: as usual.
    """
    env = study.env
    tasks = env.tasks(env.learning_split, homes) if homes > 0 else []
    if not tasks:
        raise RpmsError(f"--explore {homes}: there is no home to explore; ask for at least 1")
    latest: Hypotheses | None = None

    def report(number: int, experience: Experience) -> None:
        nonlocal latest
        latest = Hypotheses(experience)
        far = f"home {number}/{len(tasks)}: {experience.commands} commands"
        study.report(f"{far}, {_progress(latest)}")

    try:
        explore(env, tasks, seed, report, steps or STEPS)
    except KeyboardInterrupt:
        if latest is None:
            raise
        study.report("interrupted: what was learned so far is written down")
    if latest:
        _write(study, latest, f"{len(tasks)} homes of {env.learning_split}, seed {seed}")


def learn_from_runs(study: Study, folder: Path) -> None:
    """Learn from the recorded episodes of a run, or of all runs below a folder."""
    env = study.env
    experience = Experience(env.command_templates())
    episodes = [list(_replay(env, record)) for record in _records(env, folder)]
    # Whether places share a spot has to be known before the first use is noted.
    experience.doubts = any(use.after["reachable"] for episode in episodes for use in episode)
    for episode in episodes:
        for action, before, after, worked in episode:
            experience.note(action, experience.look_at(before), after, worked)
        if episode:
            experience.note_spots(episode[-1].after)
    rules, source = Hypotheses(experience), f"{len(episodes)} recorded episodes"
    study.report(f"{source}: {_progress(rules)}")
    _write(study, rules, source)


def _records(env: Environment, folder: Path) -> Iterator[EpisodeRecord]:
    for run in find_runs(folder, env.name):
        split = run.manifest.split
        if not is_learning_split(env.name, split):
            raise RpmsError(
                f"{run.folder}: its tasks ({split}) are for judging, not for learning; "
                f"take runs of {env.learning_split}"
            )
        yield from read_records(run, run.conditions)


class RecordedUse(NamedTuple):
    """An action that was carried out or refused, and what was believed before and after it."""

    action: str
    before: Belief
    after: Belief
    worked: bool


def _replay(env: Environment, record: EpisodeRecord) -> Iterator[RecordedUse]:
    """An episode on paper, by its actions and the answers."""
    belief = env.first_belief(record["first_observation"])
    for turn in record["history"]:
        if not turn["action"]:
            continue
        done = env.carried_out(turn["action"], belief, turn["observation"])
        before, belief = belief, env.update_belief(belief, turn["action"], turn["observation"])
        if done:
            yield RecordedUse(done, before, belief, not turn["failed"])


def _progress(rules: Hypotheses) -> str:
    """Actions seen to work, conditions, what is unexplained."""
    known, experience = rules.rules.values(), rules.experience
    conditions = sum(
        len(rule.kept) + len(rule.ways) + len(rule.tables.single) + bool(rule.tables.pair)
        for rule in known
    )
    unexplained = sum(rule.unexplained for rule in known)
    return (  # what is refuted is given up
        f"{len(experience.worked)} of {len(experience.templates)} actions seen to work; "
        f"now {conditions} conditions, {unexplained} refusals unexplained"
    )


def _write(study: Study, rules: Hypotheses, source: str) -> None:
    """Write down what is known, and check it as ``rpms rules check`` does."""
    env = study.env
    head = f"Tier 3 of {env.name}, learned from {source}.\nevidence.json has the counts."
    write_tier(study.out, beside(tier_of(rules), load_manual(env.name).actions), head)
    write_evidence(study.out, rules)
    findings = audit(env.rules, env.goal_types(), env.command_verbs(), over=study.out)
    for finding in findings:
        study.report(str(finding))
    study.report(f"{study.out}: {len(findings)} problems")
