"""The protocol card under every table, and what the plan of the paper shows."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from rpms.envs import get_environment
from rpms.evals.analysis.report import read_report
from rpms.evals.analysis.report.page import render_page
from rpms.evals.records.protocol_card import card_text, protocol_card, types_missing
from rpms.evals.records.run_folder import Run, read_run
from rpms.evals.running.diff_arms import played_states
from rpms.evals.running.manifest import make_manifest, merge_manifest
from rpms.evals.running.plan import make_plan
from rpms.evals.running.plan_file import condition_contexts, plan_context, read_plan
from rpms.graph import build_graph, run_episode
from rpms.nodes import prompt_build
from rpms.nodes.state import EpisodeState, settings_of
from rpms.prompts.blocks import load_system
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.limits import MOST_TASKS
from tests.evals.sample_runs import write_run
from tests.under_arm import prompt_of


def test_the_paper_protocol_recalls_its_types_of_memory_and_lists_its_actions() -> None:
    """No fifth type, no k, no limit of tokens, and the nine actions of the listing."""
    fixed = read_plan("paper").settings
    assert (fixed["k"], fixed["memory_tokens"]) == (MOST_TASKS, 0)
    prompts = get_environment("alfworld").prompts
    actions = re.findall(r"^\d+\. (\w+)", load_system(prompts, "paper"), re.M)
    assert actions == ["go", "take", "put", "open", "close", "use", "clean", "heat", "cool"]
    assert load_system(prompts, "ours") == load_system(prompts) != load_system(prompts, "paper")
    science = get_environment("scienceworld").prompts
    assert load_system(science, "paper") == load_system(science)


def paper_context(condition: str) -> RunContext:
    return plan_context("paper", RunContext(), ())[1].under(condition)


@pytest.mark.engine
def test_the_paper_protocol_tells_no_condition_more_than_the_paper_does() -> None:
    """Neither what is hot, nor why the last action failed, nor actions that A is not told of."""
    seen = dict[str, str]()
    for style in ("ours", "paper"):
        context = paper_context("D").with_(prompt_style=style)
        states = played_states(context, "alfworld", limit=6, max_steps=30)
        prompts = [message["content"] for s in states for message in prompt_of(s, context)]
        seen[style] = "\n".join(prompts)
    for words in ("[Last Action]", "\n  Known: ", "] inventory", "] examine <thing>"):
        assert words in seen["ours"] and words not in seen["paper"], words
    assert "] take <object> from <place>" in seen["paper"]


@pytest.mark.engine
def test_the_paper_protocol_is_what_the_prompts_show() -> None:
    seen = dict[str, set[str]]()
    context = paper_context("D")

    def build(state: EpisodeState) -> EpisodeState:
        update = prompt_build(state)
        settings = settings_of(state)
        types = seen.setdefault(settings.prompt_style, set())
        types |= {recall["entry"]["type"] for recall in state["recalls"]}
        outcomes = {recall["dropped_by"] for recall in state["recalls"]}
        assert settings.prompt_style == "ours" or not outcomes & {"over top-k", "over token budget"}
        assert ("10. examine" in str(update["prompt"][0])) == (settings.prompt_style == "ours")
        return update

    graph = build_graph(nodes={"prompt_build": build})
    for settings in (context, RunContext()):
        for task in range(3):
            run_episode(task, split="generated_seen", context=settings, graph=graph)
    assert "found" in seen["ours"] and seen["paper"] and "found" not in seen["paper"]


KEYS = [
    "split", "tasks", "types missing", "arms", "wording", "steps", "examples", "history",
    "system prompt", "trials", "repeats", "decoding", "learning data", "memory",
    "recall", "rules", "rules printed",
]  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Run:
    wins = {label: [True, False] for label in "ABD"}
    return read_run(write_run(tmp_path, wins, wording="the paper's", hashes={
        "rules": "r" * 64, "memory": {"D": "m" * 64},
    }, memories={"m" * 64: {"sources": ["sim, 60 tasks"]}}))  # fmt: skip


def test_every_point_is_there(run: Run) -> None:
    card = protocol_card(run.manifest)
    assert list(card) == KEYS
    assert card["split"] == "alfworld generated_unseen" and card["tasks"].startswith("2 (")
    assert {name: card[name] for name in KEYS[2:]} == {
        "types missing": "not recorded", "arms": "as their labels say", "wording": "the paper's",
        "steps": "50", "examples": "1", "history": "all turns",
        "system prompt": "ours", "trials": "1", "repeats": "1",
        "decoding": "temperature 0, seed 0, at most 256 tokens, free replies",
        "learning data": "sim, 60 tasks", "memory": "mmmmmmmm",
        "recall": "grounded, at most 3 of each type, all types, 400 tokens", "rules": "rrrrrrrr",
        "rules printed": "goal",
    }  # fmt: skip
    turned = run.manifest.model_copy(update={"tasks": run.manifest.tasks[::-1]})
    fewer = run.manifest.model_copy(update={"tasks": run.manifest.tasks[:1]})
    assert protocol_card(turned)["tasks"] == card["tasks"] != protocol_card(fewer)["tasks"]


def test_an_old_manifest_says_what_it_does_not_know(tmp_path: Path) -> None:
    """No settings, no hashes, contexts with hardly a field: older and foreign runs."""
    settings = {"A": {"rules": False, "memory": False}, "D": {"rules": True, "memory": True}}
    folder = write_run(
        tmp_path, {"A": [True], "D": [True]}, conditions=settings, settings={}, hashes={},
        logs=False,
    )  # fmt: skip
    card = protocol_card(read_run(folder).manifest)
    assert card["wording"] == card["memory"] == card["learning data"] == "not recorded"
    assert card["rules"] == "not recorded" and card["steps"] == "50"
    alone = protocol_card(read_run(folder).manifest, ["A"])
    assert alone["rules"] == alone["memory"] == "none"


def test_the_card_names_the_task_types_that_the_sample_does_not_have() -> None:
    """Of the first homes, of an ALFWorld sample and of one that is too small for 26 tasks."""

    def missing(env: str, split: str, limit: int, spread: bool = False) -> str:
        plan = make_plan(env, split, {"A": RunContext()}, limit, spread=spread)
        return protocol_card(make_manifest(plan))["types missing"]

    assert missing("alfworld", "generated_unseen", 5) == "1 of 6 (pick two obj and place)"
    assert missing("alfworld", "generated_unseen", 6) == "none"
    assert missing("alfworld", "generated_unseen", 10, True) == "none"
    assert missing("alfworld", "generated_unseen", 4, True).startswith("2 of 6 (")
    assert missing("scienceworld", "test", 26, True) == "none"
    few = missing("scienceworld", "test", 10, True)
    assert few.startswith("16 of 26 (") and few.endswith(", and 10 more)")
    # A run that grows is judged by all its tasks.
    first, more = (
        make_manifest(make_plan("alfworld", "generated_unseen", {"A": RunContext()}, n))
        for n in (5, 6)
    )
    assert types_missing(merge_manifest(Path("run"), first, more)) == ""


def test_every_output_carries_the_card(run: Run) -> None:
    report = read_report(run.folder)
    text = card_text(protocol_card(run.manifest))
    assert len(report.tables) > 5
    for table in report.tables:
        assert table.protocol == text == table.as_json()["protocol"]
        head = table.as_markdown().partition("\n| ")[0]
        assert head.splitlines()[4].startswith("Protocol: split: alfworld generated_unseen; tasks:")
    assert json.loads(json.dumps(report.as_json()))["protocol"] == protocol_card(run.manifest)
    assert report.as_markdown().count("Protocol: split") == 1
    page = html.unescape(render_page(report))
    assert page.count("<summary>Protocol</summary>") == 1, "once, not with every table"
    for name, value in protocol_card(run.manifest).items():
        assert f"<dt>{name}</dt><dd>{value}</dd>" in page


def test_the_baseline_is_said_to_show_all_its_turns() -> None:
    arms = condition_contexts(["A", "S", "D"], RunContext(history=3))
    manifest = make_manifest(make_plan("alfworld", "generated_unseen", arms, 1))
    assert protocol_card(manifest)["history"] == ("all turns (A) | last 3 (S, D)")
    assert manifest.conditions["A"]["history"] == -1


def test_an_arm_is_said_to_have_only_what_it_has() -> None:
    """Not the steps of the first arm, and no memory file where its method reads nrules."""
    arms = {"short": RunContext(max_steps=3), "D": RunContext(memory_method="reflexion")}
    card = protocol_card(make_manifest(make_plan("alfworld", "generated_unseen", arms, 1)))
    assert card["steps"] == "3 (short) | 50 (D)"
    assert card["arms"] == "short: D; D memory_method=reflexion"
    assert card["memory"].endswith(" | none (D)") and card["learning data"].endswith("| none (D)")
