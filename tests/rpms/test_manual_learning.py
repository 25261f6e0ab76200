"""``rpms rules learn``, from the command line to a manual on disk."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
import yaml

from rpms.nodes.manual import load_manual
from tests.command_line import Rpms
from tests.openai_server import Answer, OpenAIServer

NAME = "examples.lighthouse.world:WORLD"
WRONG = """actions:
  - {id: E-OPEN, name: open, syntax: "open {place}",
     preconditions: [at(place), closed(place), holding(place)], effects: [open(place)]}
"""


def played(rpms: Rpms, out: Path, split: str, *more: str) -> Path:
    words = ["--conditions", "B", "--limit", "6", "--workers", "0", "--out", str(out)]
    done = rpms("eval", "--env", NAME, "--split", split, *words, *more)
    assert done.code == 0, done.err
    return out


def test_a_manual_from_exploring_is_checked_at_once(rpms: Rpms, tmp_path: Path) -> None:
    words = ["--explore", "2", "--steps", "120", "--out", str(tmp_path)]
    done = rpms("rules", "learn", "--env", NAME, *words)
    assert done.code == 0 and done.out.splitlines()[-1] == f"{tmp_path}: 0 problems"
    assert rpms("rules", "check", "--env", NAME, "--rules", str(tmp_path)).code == 0
    assert (tmp_path / "after" / "1" / "environment.yaml").is_file()
    counts = json.loads((tmp_path / "evidence.json").read_text(encoding="utf-8"))
    assert counts["go to {place}"]["accepted"] > 0


@pytest.mark.engine
def test_progress_only_goes_forward(rpms: Rpms, tmp_path: Path) -> None:
    """In the second home places share a spot, and what was noted before is given up."""
    words = ["--explore", "3", "--steps", "200", "--out", str(tmp_path)]
    done = rpms("rules", "learn", "--env", "alfworld", *words)
    told = re.findall(r"^home (\d)/3: (\d+) commands, (\d+) of 14 actions", done.out, re.M)
    homes, commands, worked = ([int(number) for number in each] for each in zip(*told, strict=True))
    assert homes == [1, 2, 3] and worked == sorted(worked)
    assert all(after - before >= 150 for before, after in itertools.pairwise([0, *commands]))
    counts = json.loads((tmp_path / "evidence.json").read_text(encoding="utf-8"))
    assert sum(one["accepted"] + one["refused"] for one in counts.values()) < commands[-1] - 100


def test_a_manual_from_recorded_runs(rpms: Rpms, tmp_path: Path) -> None:
    run = played(rpms, tmp_path / "run", "practice")
    words = ["--from-runs", str(run), "--domain", "--out", str(tmp_path / "learned")]
    done = rpms("rules", "learn", "--env", NAME, *words)
    assert done.code == 0 and "6 recorded episodes" in done.out
    manual = load_manual(NAME, str(tmp_path / "learned"))
    actions = {rule.name: rule for rule in manual.actions}
    assert actions["go_to"].support and "at(place)" in actions["go_to"].effects
    assert any(rule.source == "learned" for rule in manual.domain.likely_places)


def test_a_wrong_rule_is_seen_in_the_report_and_corrected(rpms: Rpms, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    (wrong / "environment.yaml").write_text(WRONG, encoding="utf-8")
    run = played(rpms, tmp_path / "run", "practice", "--rules", str(wrong))
    assert rpms("report", str(run)).code == 0
    report = (run / "report.md").read_text(encoding="utf-8")
    row = next(line for line in report.splitlines() if line.startswith("| E-OPEN | 0 |"))
    assert not row.endswith(" 0 |")  # accepted after all
    words = ["--revise", "--from-runs", str(run), "--manual", str(wrong)]
    done = rpms("rules", "learn", "--env", NAME, *words, "--out", str(tmp_path / "right"))
    assert done.code == 0 and "E-OPEN: no longer needs 'holding(place)'" in done.out
    right = yaml.safe_load((tmp_path / "right" / "environment.yaml").read_text(encoding="utf-8"))
    opening = next(one for one in right["actions"] if one["id"] == "E-OPEN")
    assert opening["preconditions"] == ["at(place)", "closed(place)"]


def test_runs_of_tasks_for_judging_are_refused(rpms: Rpms, tmp_path: Path) -> None:
    run = played(rpms, tmp_path / "run", "rocks")
    words = ["--from-runs", str(run), "--out", str(tmp_path / "learned")]
    done = rpms("rules", "learn", "--env", NAME, *words)
    assert done.code == 2 and "are for judging, not for learning" in done.err
    assert not (tmp_path / "learned").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "either --explore N or --from-runs DIR"),
        (["--explore", "1", "--from-runs", "x"], "either --explore N or --from-runs DIR"),
        (["--explore", "-1"], "'--explore': Input should be greater"),
        (["--explore", "1", "--revise"], "--revise needs runs"),
        (["--explore", "1", "--domain"], "--domain needs runs"),
        (["--from-runs", "no-such-folder"], "no manifest.json in no-such-folder"),
    ],
)
def test_what_cannot_be_learned_from(
    rpms: Rpms, tmp_path: Path, words: list[str], said: str
) -> None:
    done = rpms("rules", "learn", "--env", NAME, *words, "--out", str(tmp_path / "learned"))
    assert done.code == 2
    assert said in done.err and len(done.err.strip().splitlines()) == 1


def test_a_model_proposes_and_the_counts_say_what_came_of_it(
    rpms: Rpms, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.plays("not at(place)\nholding(place)\nnonsense")
    words = ["--explore", "2", "--steps", "120", "--out", str(tmp_path)]
    server = ["--model", "openai:any", "--base-url", openai_server.url]
    done = rpms("rules", "learn", "--env", NAME, *words, *server)
    assert done.code == 0 and "openai:any: 0 proposals kept" in done.out
    counts = json.loads((tmp_path / "evidence.json").read_text(encoding="utf-8"))
    proposed = counts["go to {place}"]["proposed"]
    assert proposed["kept"] == []
    assert proposed["dropped"]["holding(place)"] == "it rejects a use that was accepted"
    asked = [one for one in counts.values() if "proposed" in one]
    assert len(openai_server.requests) == len(asked) > 3


def test_a_model_that_cannot_be_asked_is_one_line(
    rpms: Rpms, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer(status=400))
    words = ["--explore", "1", "--steps", "60", "--out", str(tmp_path)]
    server = ["--model", "openai:any", "--base-url", openai_server.url]
    done = rpms("rules", "learn", "--env", NAME, *words, *server)
    assert done.code == 2 and "no proposal could be had" in done.err
