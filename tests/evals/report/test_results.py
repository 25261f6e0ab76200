"""The tables of results, on runs whose counts are known; and what tables say of their run."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from scipy.stats import binomtest

from rpms.commands.terminal_tables import print_source, print_tables
from rpms.envs import get_environment
from rpms.evals.analysis.arm_differences import code_differences
from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.measures import mean_interval
from rpms.evals.analysis.report import read_report
from rpms.evals.analysis.report.behaviour import error_table
from rpms.evals.analysis.report.page import render_page
from rpms.evals.analysis.report.results import (
    main_table,
    pair_table,
    repeat_table,
    square_table,
    task_table,
    trial_table,
    type_table,
)
from rpms.evals.analysis.tables import Table
from rpms.evals.records.run_folder import Run, read_run
from rpms.evals.records.schema import EpisodeLine
from rpms.evals.running.plan import Job
from rpms.evals.running.runner import join_run
from rpms.vocabulary.context import RunContext
from tests.evals.sample_runs import LABEL, add_lines, contexts, episode, write_repeats, write_run

# The paper's 2x2: how many of 134 each condition won, and alone against the baseline.
PAPER = {"A": 48, "C": 55, "B": 68, "D": 80}


def paired(won: int, gained: int, lost: int, base: int, n: int = 134) -> list[bool]:
    """Won tasks such that, against a base that wins the first ones, so many differ."""
    row = [i < base for i in range(n)]
    for i in range(lost):
        row[i] = False
    for i in range(base, base + gained):
        row[i] = True
    assert sum(row) == won
    return row


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Rules gain 36 and lose 16 against the baseline, as in the paper's appendix."""
    wins = {
        "A": [i < 48 for i in range(134)],
        "B": paired(68, 36, 16, 48),
        "C": paired(55, 28, 21, 48),
        "D": paired(80, 52, 20, 48),
    }
    return read_run(write_run(tmp_path_factory.mktemp("paper"), wins, logs=False))


def rows(table: Table) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = table.as_json()["rows"]
    return lines


def test_the_tables_of_the_paper(paper: Run) -> None:
    main = {row["condition"][0]: row for row in rows(main_table(Results(paper)))}
    assert {name: row["won"] for name, row in main.items()} == PAPER
    assert main["D"]["success rate"]["share"] == pytest.approx(80 / 134)
    assert main["D"]["gain over A"]["points"] == pytest.approx(23.88, abs=0.01)
    assert [row["errors"] for row in main.values()] == [0, 0, 0, 0]
    pair = rows(pair_table(Results(paper)))[0]
    assert (pair["first"], pair["second"]) == ("A baseline", "B rules")
    assert (pair["only first won"], pair["only second won"]) == (16, 36)
    assert round(pair["McNemar p"], 4) == 0.0078
    assert pair["McNemar p"] < pair["McNemar p, Holm"] <= 3 * pair["McNemar p"]
    assert [(row["rules"], row["memory"]) for row in main.values()] == [
        ("off", "off"), ("on", "off"), ("off", "on"), ("on", "on")
    ]  # fmt: skip
    table = type_table(Results(paper))
    assert table.columns[1:] == ["look at obj in light (23)", *table.columns[2:-1], "all (134)"]
    *_, last = rows(table)
    *types, total = [last[column] for column in table.columns[1:]]
    assert last["condition"] == "D rules+memory" and total["won"] == 80 and total["n"] == 134
    assert sum(each["won"] for each in types) == 80 and sum(each["n"] for each in types) == 134


def test_the_square_adds_up(paper: Run) -> None:
    off, on, gain = rows(square_table(Results(paper)))
    assert off["gain of rules"]["points"] == pytest.approx(100 * 20 / 134)
    assert gain["rules off"]["points"] == pytest.approx(100 * 7 / 134)
    both = gain["gain of rules"]
    assert both["points"] == pytest.approx(100 * (80 - 68 - 55 + 48) / 134)
    assert both["points"] == pytest.approx(
        on["gain of rules"]["points"] - off["gain of rules"]["points"]
    )
    assert both["low"] < both["points"] < both["high"]


def test_the_square_stands_on_the_state_where_that_was_played(paper: Run, tmp_path: Path) -> None:
    """Else on the baseline, and it says so; an arm that is only called S is no state alone."""
    baseline = square_table(Results(paper))
    assert baseline and any("no condition S" in note for note in baseline.notes)
    wins = {"A": [False] * 4, "S": [True, False] * 2, "B": [True] * 3 + [False],
            "C": [True, True, False, False], "D": [True] * 4}  # fmt: skip
    run = read_run(write_run(tmp_path / "run", wins, logs=False))
    table = square_table(Results(run))
    off, on, gain = rows(table)
    assert (off["rules off"]["share"], on["rules on"]["share"]) == (0.5, 1.0)
    assert (off["gain of rules"]["points"], gain["rules off"]["points"]) == (25.0, 0.0)
    assert (on["gain of rules"]["points"], gain["rules on"]["points"]) == (50.0, 25.0)
    assert gain["gain of rules"]["points"] == 25.0
    notes = " ".join(table.notes)
    assert "(D - S) - (B - S) - (C - S)" in notes and "S, the state alone" in notes
    assert [row[0].text for row in main_table(Results(run)).rows][:3] == [
        "A baseline",
        "S state",
        "B rules",
    ]
    pairs = [("A", "S"), ("S", "B"), ("A", "B"), ("A", "C")]
    manifest = run.manifest.model_copy(update={"compare": pairs})
    table = pair_table(Results(replace(run, manifest=manifest)))
    differ = {(row["first"], row["second"]): row["differ in"] for row in rows(table)}
    assert differ["A baseline", "S state"] == "state_block"
    assert differ["S state", "B rules"] == "rules"
    assert differ["A baseline", "B rules"] == "rules, state_block", "it shows goal and state, too"
    assert differ["A baseline", "C memory"] == "memory, state_block"
    named = contexts(*wins) | {"S": RunContext.for_condition("C", memory_control="empty").plain}
    other = read_run(write_run(tmp_path / "named", wins, logs=False, conditions=named))
    assert rows(square_table(Results(other)))[0]["rules off"]["share"] == 0.0


@pytest.mark.engine
def test_the_square_of_a_real_run(real_run: Path) -> None:
    table = square_table(Results(read_run(real_run)))
    assert "(D - S) - (B - S) - (C - S)" in table.notes[0]
    assert render_page(read_report(real_run)).count("S state") > 5


def test_errors_are_left_out_and_said(tmp_path: Path) -> None:
    """A lost three episodes to a bad key: its rate stands on the other seven, as do its pairs."""
    broken = {"failure_mode": "model_error", "error": "401"}
    gone = {"failure_mode": "infrastructure_error", "error": "java.lang"}
    wins = {"A": [False] * 3 + [True] * 7, "B": [True] * 10}
    lines = {("A", 0): broken, ("A", 1): broken, ("A", 2): gone}
    run = read_run(write_run(tmp_path, wins, lines=lines, logs=False))
    table = main_table(Results(run))
    first = rows(table)[0]
    assert (first["episodes"], first["won"], first["errors"]) == (7, 7, 3)
    assert first["success rate"]["share"] == 1.0
    notes = " ".join(table.notes)
    assert "2 of 20 episodes ended in a model error" in notes
    assert "1 of 20 episodes ended in an infrastructure error" in notes
    pair = rows(pair_table(Results(run)))[0]
    assert (pair["tasks"], pair["only second won"], pair["McNemar p"]) == (7, 0, 1.0)
    assert "square" not in read_report(tmp_path).names


def test_an_unfinished_run_is_reported_and_says_so(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, {"A": [True] * 6, "B": [True, False]}, logs=False))
    table = main_table(Results(run))
    assert [row["not run"] for row in rows(table)] == [0, 4]
    assert any("not finished: 8 of 12" in note for note in table.notes)
    report = read_report(tmp_path).as_json()
    assert report["complete"] is False and (report["played"], report["planned"]) == (8, 12)
    assert "8 of 12 episodes" in report["source"]


def test_a_run_without_any_episode(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {name: [True] * 2 for name in "ABCD"}, logs=False)
    (folder / "episodes.jsonl").write_text("")
    report = read_report(folder)
    assert rows(report.tables[0])[0]["success rate"] == {"share": None}
    assert "0 of 8" in report.as_markdown()


SCORES = {"A": [10, -100, 40, 60, 100, 8], "D": [30, 0, 70, 100, 100, 8]}


def test_scienceworld_is_judged_by_its_floored_score(tmp_path: Path) -> None:
    names = ["boil/1", "boil/2", "find-plant/1", "find-plant/2", "melt/1", "use-thermometer/3"]
    families = ["F3", "F3", "F1", "F1", "F3", "F2"]
    lines = {
        (condition, i): {
            "task": names[i], "type": families[i], "score": float(score),
            "env": "scienceworld",
            "failure_mode": None if score == 100 else
            "wrong_termination" if score < 0 else "timeout",
        }
        for condition, scores in SCORES.items() for i, score in enumerate(scores)
    }  # fmt: skip
    tasks = [
        {"id": name, "index": i, "type": families[i], "goal": f"goal {i}"}
        for i, name in enumerate(names)
    ]
    wins = {condition: [s == 100 for s in scores] for condition, scores in SCORES.items()}
    folder = write_run(
        tmp_path, wins, lines=lines, logs=False, env="scienceworld", split="test", tasks=tasks
    )
    report = read_report(folder).as_json()["tables"]
    first, second = report["main"]["rows"]
    assert first["score (floored)"]["value"] == pytest.approx(218 / 6)
    assert first["score (raw)"]["value"] == pytest.approx(118 / 6)
    assert first["score (floored)"]["low"] < 218 / 6 < first["score (floored)"]["high"]
    assert second["gain over A"]["value"] == pytest.approx((308 - 218) / 6)
    assert (first["won"], second["won"]) == (1, 2)
    families = {name.partition(" ")[0]: cell for name, cell in report["types"]["rows"][0].items()}
    assert families["F3"]["value"] == pytest.approx(110 / 3)
    assert families["F1"]["value"] == pytest.approx(50)
    by_task = {row[""]: row["A baseline"]["value"] for row in report["tasks"]["rows"]}
    assert (by_task["boil"], by_task["find plant"], by_task["melt"]) == (5, 50, 100)
    pair = report["pairs"]["rows"][0]
    # Three of six differ, all upwards: 2 of the 2^3 sign patterns are as extreme.
    assert pair["Wilcoxon p"] == pytest.approx(0.25)


# Three repeats of four tasks: always, twice, once, never.
KNOWN = [[True] * 3, [True, True, False], [False, True, False], [False] * 3]


def test_the_table_of_repeats(tmp_path: Path) -> None:
    run = write_repeats(tmp_path, {"D": KNOWN})
    assert run.complete
    table = repeat_table(Results(run))
    assert table.columns[2:] == ["pass^1", "pass^2", "pass^3", "flip rate"]
    figures = [cell.text for cell in table.rows[0][1:]]
    assert figures == ["4", "50.0%", "33.3%", "25.0%", "50.0%"]
    assert "repeats" in [table.id for table in read_report(tmp_path).tables]
    assert "trials" not in read_report(tmp_path).names
    # A task with an error in one repeat is left out.
    broken = episode("D", 0, False, repeat=2, failure_mode="model_error", error="gone")
    (row,) = rows(repeat_table(Results(add_lines(tmp_path, broken))))
    assert row["tasks"] == 3 and row["pass^3"]["share"] == 0


def test_every_table_takes_all_repeats_and_each_task_once(tmp_path: Path) -> None:
    """By the first repeat A and B are equal; by all three B wins more often."""
    ends = {
        "A": [[True, False, False], [False, False, False], [True, True, True], [False] * 3],
        "B": [[True, True, True], [False, True, True], [True, True, True], [False, False, True]],
    }
    run = write_repeats(tmp_path, ends)
    report = read_report(run.folder)
    tables = {table.id: table.as_json() for table in report.tables}
    first, second = tables["main"]["rows"]
    assert (first["episodes"], first["won"], first["not run"]) == (12, 4, 0)
    assert first["success rate"]["share"] == pytest.approx(1 / 3)
    assert second["success rate"]["share"] == pytest.approx(3 / 4)
    low, high = (second["success rate"][side] for side in ("low", "high"))
    shares = [1, 2 / 3, 1, 1 / 3]
    bootstrapped = mean_interval(shares)
    assert bootstrapped and (low, high) == (bootstrapped.low, bootstrapped.high), "over tasks"
    assert second["gain over A"]["points"] == pytest.approx(100 * (3 / 4 - 1 / 3))
    (pair,) = tables["pairs"]["rows"]
    assert (pair["first won more often"], pair["second won more often"], pair["tasks"]) == (0, 3, 4)
    # All three differences are upwards: 2 of the 2^3 sign patterns are as far out.
    assert pair["permutation p"] == pytest.approx(2 / 2**3)
    _, *types, every = tables["types"]["rows"][1].values()
    shares = sorted(each["share"] for each in types)
    assert shares[:2] == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
    assert every["share"] == pytest.approx(3 / 4)
    assert "+41.7 points" in " ".join(report.verdict)
    notes = " ".join(tables["main"]["notes"])
    assert notes.count("each task counts once, with the mean over its repeats") == 1
    assert "first repeat" not in report.as_markdown()


def test_a_repeat_that_is_missing_or_broken_leaves_its_task_in(tmp_path: Path) -> None:
    run = write_repeats(tmp_path, {"A": [[True, False, True, False], [False]]})
    broken = episode("A", 1, False, repeat=2, failure_mode="model_error", error="gone")
    (row,) = rows(main_table(Results(run := add_lines(tmp_path, broken))))
    assert (row["episodes"], row["won"], row["errors"], row["not run"]) == (5, 2, 1, 2)
    assert row["success rate"]["share"] == pytest.approx((1 / 2 + 0) / 2)
    assert not run.complete


def test_tasks_that_were_won_always_or_never_have_wilsons_interval(tmp_path: Path) -> None:
    """Over the two tasks, not over the four episodes."""
    run = write_repeats(tmp_path, {"A": [[True, True], [True, True]]})
    (row,) = rows(main_table(Results(run)))
    assert row["success rate"]["low"] == pytest.approx(binomtest(2, 2).proportion_ci(
        method="wilson").low)  # fmt: skip


class Ended:
    """An episode that somebody's agent has played."""

    job: Job

    def __init__(self, line: dict[str, Any]) -> None:
        self.line = line

    def result(self) -> tuple[EpisodeLine, bytes]:
        return EpisodeLine(**self.line, repeat=self.job.repeat), b""


def test_an_agent_of_ones_own_that_plays_a_task_twice_has_two_episodes(tmp_path: Path) -> None:
    """Nobody planned them, so no other task lacks a second one."""
    task = get_environment("alfworld").tasks("generated_unseen", 2)
    context = RunContext.for_condition("A")
    for number, won in ((0, True), (1, True), (0, False)):
        ended: Any = Ended({**episode("A", number, won), "task": task[number]["id"]})
        job = join_run(tmp_path, task[number], context, ended=ended)
    assert job.repeat == 2
    run = read_run(tmp_path)
    assert run.complete and (run.planned, run.done) == (3, 3)
    (row,) = rows(main_table(Results(run)))
    assert (row["episodes"], row["won"], row["not run"]) == (3, 2, 0)
    assert row["success rate"]["share"] == pytest.approx((1 / 2 + 1) / 2)


def test_the_table_of_trials(tmp_path: Path) -> None:
    """Won at once, won in the second trial, never won."""
    write_run(tmp_path, {"D": [True, False, False]}, settings={"trials": 3})
    later = [(1, 2, True), (2, 2, False), (2, 3, False)]
    lines = (episode("D", number, won, trial=trial) for number, trial, won in later)
    run = add_lines(tmp_path, *lines)
    table = trial_table(Results(run))
    assert run.complete
    assert [cell.text for cell in table.rows[0][1:]] == ["3", "33.3%", "66.7%", "66.7%"]
    assert [episode.trial for episode in run.judged("D")] == [1, 2, 3]
    assert "repeats" not in read_report(run.folder).names


BOTH = "commit abc1234, def5678"
SESSIONS = [
    {"started": "2030-01-02T03:04:05", "commit": "abc1234"},
    {"started": "2030-02-02T03:04:05", "commit": "def5678"},
]
LABELS = ("A", "B", "C", "D", "D scf=off", "D+verify", "round 1", "round 2")


@pytest.fixture
def resumed(tmp_path: Path) -> Run:
    """Conditions for every table; the last task of each was played by the second commit."""
    played: dict[str, Any] = {"repeat": 1, "cost_usd": 0.1}
    late = {**played, "started": "2030-02-02T03:04:06"}
    lines = {(label, number): late if number else played for label in LABELS for number in (0, 1)}
    wins = {label: [True, False] for label in LABELS}
    settings = {"trials": 1, "repeats": 2}
    return read_run(
        write_run(tmp_path / "run", wins, lines=lines, sessions=SESSIONS, settings=settings)
    )


def test_whatever_is_made_of_a_resumed_run_names_both_commits(resumed: Run) -> None:
    report = read_report(resumed.folder)
    assert len({table.id for table in report.tables}) == 13
    for table in report.tables:
        assert BOTH in table.source and BOTH in table.as_markdown(), table.id
        assert LABEL in table.source and "generated_unseen" in table.source
        assert all(len(row) == len(table.columns) for row in table.rows)
    console = Console(width=400, file=StringIO(), record=True)
    print_source(console, *report.origin)
    print_tables(console, report.tables)
    assert console.export_text().count(BOTH) == 1 == report.as_markdown().count(BOTH)
    assert "<code>abc1234, def5678</code>" in render_page(report)
    document = report.as_json()
    assert document["commit"] == "abc1234, def5678" and BOTH in document["source"]


@pytest.mark.parametrize(
    ("learned_by", "words"),
    [
        (["sim"], "the memory of D rules+memory was learned by sim, not by openai:m."),
        (["openai:m", "sim"], "learned by openai:m and sim, not by openai:m alone"),
        (["openai:m"], ""),
        ([], ""),
    ],
)
def test_another_players_memory_is_called_that(
    tmp_path: Path, learned_by: list[str], words: str
) -> None:
    """What a control leaves of a memory, an empty one, is nobody's; nor is one without a note."""
    labels = ["B", "D", "D memory_control=empty"]
    conditions = {name: {**own, "model": "openai:m"} for name, own in contexts(*labels).items()}
    source = "sim, alfworld generated_seen, 60 tasks, 3 rounds of condition B, commit abc1234"
    memory = {"sources": [source], "learned_by": learned_by, "entries": 9, "later": "ignored"}
    run = read_run(write_run(
        tmp_path, {label: [True] for label in labels}, logs=False, model="openai:m",
        conditions=conditions, hashes={"memory": dict.fromkeys(labels[1:], "m" * 64)},
        memories={"m" * 64: memory} if learned_by else {},
    ))  # fmt: skip
    notes = " ".join(main_table(Results(run)).notes)
    assert words in notes and ("Borrowed memory: " in notes) == bool(words)
    known = source if learned_by else "not recorded"
    assert f"learning data: {known}" in read_report(run.folder).tables[0].protocol


def test_a_pair_says_in_what_it_differs(tmp_path: Path) -> None:
    """Settings that mean nothing in one of the two are none: without memory, no arbiter."""
    wins = {"B": [True] * 8, "D": [True] * 8, "D arbitration=none": [True] * 2 + [False] * 6,
            "D memory_control=empty": [True] * 2 + [False] * 6}  # fmt: skip
    compare = [*combinations(wins, 2)]
    pairs = rows(
        pair_table(Results(read_run(write_run(tmp_path, wins, logs=False, compare=compare))))
    )
    assert [row["differ in"] for row in pairs] == [
        "memory", "memory", "memory", "arbitration", "memory_control",
        "arbitration, memory_control",
    ]  # fmt: skip
    assert pairs[3]["second - first"]["points"] == -75
    assert pairs[3]["McNemar p"] == pytest.approx(2 / 2**6)


def test_a_pair_names_code_and_files_by_content(tmp_path: Path) -> None:
    """Stages, a model and a method of one's own, manuals and memories; a path alone is nothing."""
    plain = RunContext.for_condition("D").plain
    settings: dict[str, dict[str, Any]] = {
        "ours": plain,
        "mine": plain,
        "yours": plain,
        "mended": plain,
        "moved": {**plain, "memory_file": "elsewhere.jsonl", "rules_dir": "elsewhere"},
        "other memory": {**plain, "memory_file": "elsewhere.jsonl"},
        "other manual": {**plain, "rules_dir": "elsewhere"},
        "fewer rules": {**plain, "without_rules": "U-1"},
        "edited rules": plain,
    }

    def stages(path: str, digest: str) -> dict[str, dict[str, str]]:
        return {"nodes scf": {"path": path, "hash": digest}}

    swapped = {
        "mine": stages("own:stages", "1" * 12), "mended": stages("own:stages", "2" * 12),
        "yours": stages("other:stages", "1" * 12),
    }  # fmt: skip
    hashes = {
        "rules": "r" * 64,
        "rules_of": {"other manual": "s" * 64, "fewer rules": "t" * 64, "edited rules": "u" * 64},
        "memory": {**dict.fromkeys(settings, "m" * 64), "other memory": "n" * 64},
    }
    wins = {label: [True, False] for label in settings}
    run = read_run(write_run(tmp_path / "run", wins, logs=False, conditions=settings,
                             swapped=swapped, hashes=hashes,
                             compare=[*combinations(wins, 2)]))  # fmt: skip
    found = {
        (row["first"], row["second"]): row["differ in"] for row in rows(pair_table(Results(run)))
    }
    assert {name: found["ours", name] for name in list(settings)[1:]} == {
        "mine": "nodes (ours | scf from own:stages)",
        "yours": "nodes (ours | scf from other:stages)",
        "mended": "nodes (ours | scf from own:stages)",
        "moved": "",
        "other memory": f"memory_file ({'m' * 8} | {'n' * 8})",
        "other manual": f"rules_dir ({'r' * 8} | {'s' * 8})",
        "fewer rules": "without_rules",
        "edited rules": f"manual ({'r' * 8} | {'u' * 8})",
    }
    assert found["mine", "yours"] == "nodes (scf from own:stages | scf from other:stages)"
    only = "nodes (scf from own:stages 11111111 | scf from own:stages 22222222)"
    assert found["mine", "mended"] == only
    own = {"model": {"path": "own:make", "hash": "1" * 12}}
    edited = {"model": {"path": "own:make", "hash": "2" * 12}}
    assert code_differences(own, edited) == {"model code": "own:make: 11111111 | 22222222"}
    assert code_differences(own, own) == {}


def test_names_of_tasks_that_tell_goal_types_apart_have_a_table(tmp_path: Path) -> None:
    """Such as tickets that are won by being handed over, and by nothing else."""
    names = ["hand over/1", "mms_issue/2", "mms_issue/3"]
    tasks = [{"id": name, "index": i, "type": "mms_issue", "goal": "g"}
             for i, name in enumerate(names)]  # fmt: skip
    lines = {("A", i): {"task": name, "type": "mms_issue"} for i, name in enumerate(names)}
    judged = [["known action", "kept"], ["T", "broken"]]
    passed = {"action": "pay", "proposal": "pay", "judged": judged}
    steps = {("A", i): dict.fromkeys(range(3, 3 + i), passed) for i in range(3)}
    folder = write_run(
        tmp_path / "run", {"A": [True, True, False]}, lines=lines, steps=steps, tasks=tasks
    )
    table = task_table(Results(run := read_run(folder)))
    assert [row[0].text for row in table.rows] == ["hand over", "mms issue", "all"]
    assert [row[1].text[:5] for row in table.rows] == ["100.0", "50.0%", "66.7%"]
    table = error_table(Results(run))
    assert table.columns[-1] == "against a rule" and table.rows[0][-1].text.startswith("1.00")
    homes = write_run(tmp_path / "homes", {"A": [True]}, logs=False)
    assert "tasks" not in read_report(homes).names
