"""``rpms rules learn``: from what a world answered to a Tier 3 file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rpms.envs import Environment
from rpms.evals.experience import find_runs, is_learning_split
from rpms.evals.records import read_records
from rpms.models.opening import default_timeout, open_model
from rpms.models.replies import normalize_reply
from rpms.nodes.manual import load_manual
from rpms.rule_learning.campaign import STEPS, explore
from rpms.rule_learning.domain import learned_domain
from rpms.rule_learning.hypotheses import Hypotheses
from rpms.rule_learning.proposals import Proposed, take_proposals
from rpms.rule_learning.revising import revise
from rpms.rule_learning.transitions import Experience, Transition, replay
from rpms.rule_learning.writing import beside, tier_of, write_evidence, write_tier
from rpms.rules.audit import audit
from rpms.showing import say
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.safe_text import redact
from rpms.vocabulary.turn import EpisodeRecord

PROPOSAL_TOKENS = 256
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
        model: a chat model that may propose conditions at the end; none if empty.
        base_url: its server, if not the provider's.
    """

    env: Environment
    out: Path
    seed: int = 0
    steps: int = 0
    model: str = ""
    base_url: str = ""


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
        say(f"home {number}/{len(tasks)}: {played} commands, {describe(rules)}", flush=True)
        if number in KEPT and number < len(tasks):
            _write(study, rules, study.out / "after" / str(number), f"{number} homes")

    try:
        explore(env, tasks, study.seed, report, study.steps or STEPS)
    except KeyboardInterrupt:
        if not so_far:
            raise
        say("interrupted: what was learned so far is written down")
    told = f"{len(tasks)} homes of {env.learning_split}, seed {study.seed}"
    _conclude(study, Hypotheses(so_far[0]), told)


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
        say(f"{write_tier(study.out, tier2, head)}: {places} kinds of things with their places")
    if not revised:
        experience = Experience(env.command_templates())
        experience.doubts = any(one.after["reachable"] for ep in episodes for one in ep)
        for episode in episodes:
            for one in episode:
                before = experience.look_at(one.before)
                experience.note(one.action, before, one.after, one.worked)
            if episode:
                experience.note_spots(episode[-1].after)
        say(f"{told}: {describe(Hypotheses(experience))}")
        _conclude(study, Hypotheses(experience), told)
    else:
        manual = load_manual(env.name, str(revising or ""))
        tier, corrections = revise(manual, [one for episode in episodes for one in episode])
        for line in corrections:
            say(line)
        say(f"{told}: {len(corrections)} corrections")
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


def _conclude(study: Study, rules: Hypotheses, source: str) -> None:
    """Hear the model, if there is one; then write and check what is known in the end."""
    proposed = None
    if study.model:
        proposed = take_proposals(rules, lambda prompt: _asked(study, prompt))
        kept = sum(len(one.kept) for one in proposed.values())
        dropped = sum(len(one.dropped) for one in proposed.values())
        say(f"{study.model}: {kept} proposals kept, {dropped} dropped")
        source += f", with {kept} proposals of {study.model}"
    _write(study, rules, study.out, source, proposed)
    _check(study)


def _asked(study: Study, prompt: str) -> str:
    timeout = default_timeout(study.model)
    chat = open_model(
        study.model, max_tokens=PROPOSAL_TOKENS, timeout_s=timeout, base_url=study.base_url
    )
    try:
        return normalize_reply(chat.invoke(prompt), PROPOSAL_TOKENS).text
    except RpmsError:
        raise
    except Exception as error:  # every client raises its own kinds
        raise RpmsError(f"{study.model}: no proposal could be had: {redact(str(error))}") from error


def _write(
    study: Study,
    rules: Hypotheses,
    folder: Path,
    source: str,
    proposed: Mapping[str, Proposed] | None = None,
) -> None:
    head = f"Tier 3 of {study.env.name}, learned from {source}.\nevidence.json has the counts."
    shipped = load_manual(study.env.name).actions
    write_tier(folder, beside(tier_of(rules), shipped), head)
    write_evidence(folder, rules, proposed)


def _check(study: Study) -> None:
    env = study.env
    found = audit(env.rules, env.goal_types(), env.command_verbs(), over=study.out)
    for finding in found:
        say(finding)
    say(f"{study.out}: {len(found)} problems")
