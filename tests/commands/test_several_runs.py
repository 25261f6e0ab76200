"""Several runs of the same arms are one experiment: means over the runs, each task counted once."""

from __future__ import annotations

import json
import shutil
from itertools import product
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

import rpms as package
from rpms.evals.analysis.experiment import run_names
from rpms.evals.analysis.glossary import explanations
from rpms.evals.analysis.joined_runs import read_joined
from rpms.evals.analysis.measures import mcnemar
from rpms.evals.analysis.report import Report
from rpms.evals.analysis.report.page import step_pages
from rpms.evals.records.run_folder import read_log
from rpms.vocabulary.context import condition_title
from tests.command_line import Rpms
from tests.evals.sample_runs import contexts, write_run
from tests.real_runs import Play

TUNINGS = (
    {"A": [0, 0, 0, 0, 1, 0, 0, 0], "D": [1, 1, 1, 0, 1, 1, 0, 1]},
    {"A": [0, 1, 0, 0, 0, 0, 0, 0], "D": [1, 0, 1, 1, 1, 1, 0, 0]},
    {"A": [0, 0, 0, 0, 0, 0, 0, 0], "D": [1, 1, 1, 0, 0, 1, 1, 1]},
)


def tuning(
    folder: Path, number: int, wins: dict[str, list[int]] | None = None, **more: Any
) -> Path:
    """A run of the model ``tuned-N``."""
    rows = {arm: [*map(bool, row)] for arm, row in (wins or TUNINGS[number]).items()}
    model = more.pop("model", f"tuned-{number}")
    changes = more.pop("settings_of", {})
    settings = {name: {**context, "model": model, **changes}
                for name, context in contexts(*rows).items()}  # fmt: skip
    return write_run(folder / f"run{number}", rows, model=model, model_label=model,
                     **{"conditions": settings, "logs": False, **more})  # fmt: skip


def tunings(folder: Path, **more: Any) -> Report:
    return package.report([tuning(folder, number, **more) for number in range(3)])


def rows_of(report: Report, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = report.as_json()["tables"][table]["rows"]
    return rows


def test_a_memory_that_no_run_learned_by_itself_is_named_once(tmp_path: Path) -> None:
    memory = {"sources": ["sim"], "learned_by": ["sim"], "entries": 9}
    report = tunings(tmp_path, hashes={"memory": {"D": "m" * 64}}, memories={"m" * 64: memory})
    (note,) = [n for n in report.as_json()["tables"]["main"]["notes"] if n.startswith("Borrowed")]
    assert "learned by sim, not by tuned-0 or tuned-1 or tuned-2." in note


def test_the_tables_have_the_mean_over_runs_its_spread_and_each_run(tmp_path: Path) -> None:
    report = tunings(tmp_path, logs=True)
    _, second = rows_of(report, "main")
    assert (second["won"], second["episodes"]) == (17, 24)
    assert second["success rate"]["share"] == pytest.approx(17 / 24)
    assert second["SD over runs"]["value"] == pytest.approx(100 * stdev([6 / 8, 5 / 8, 6 / 8]))
    assert second["min-max"]["range"] == "62.5-75.0"
    by_run = rows_of(report, "runs")
    assert [(row["run"], row["won"]) for row in by_run[3:]] == [
        ("tuned-0", 6), ("tuned-1", 5), ("tuned-2", 6)
    ]  # fmt: skip
    assert "8 tasks, 3 runs of the same 2 arms, 48 episodes" in report.origin[0]
    assert "model: tuned-0, tuned-1, tuned-2; commit abc1234" in report.origin[0]
    assert report.as_json()["runs"][1]["model"] == "tuned-1"


def brute_force(differences: list[int]) -> float:
    """The two-sided share of sign patterns whose sum is as far from 0."""
    seen = abs(sum(differences))
    sums = [
        abs(sum(sign * value for sign, value in zip(signs, differences, strict=True)))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    return sum(total >= seen for total in sums) / len(sums)


def test_a_task_counts_once_in_the_test_of_a_pair(tmp_path: Path) -> None:
    report = tunings(tmp_path)
    (pair,) = rows_of(report, "pairs")
    gains = [sum(run["D"][i] - run["A"][i] for run in TUNINGS) for i in range(8)]
    assert pair["permutation p"] == pytest.approx(brute_force(gains))
    assert pair["second - first"]["points"] == pytest.approx(100 * sum(gains) / 24)
    assert pair["second - first"]["low"] < pair["second - first"]["points"]
    assert pair["tasks"] == 8
    lines = "\n".join(report.verdict)
    assert "means over 3 runs: tuned-0, tuned-1, tuned-2." in lines
    assert "8:0 discordant games" in lines and "8 tasks, 3 runs" in lines


def test_an_arm_of_ones_own_is_compared_first_over_all_runs(tmp_path: Path) -> None:
    wins = {"A": [0] * 8, "D": [1] * 4 + [0] * 4, "D mine": [1] * 8}
    runs = [
        tuning(
            tmp_path,
            n,
            wins,
            swapped={"D mine": {"nodes scf": {"path": "own:scf", "hash": "1"}}},
            compare=[("D", "D mine"), ("A", "D")],
        )
        for n in range(3)
    ]
    report = package.report(runs)
    pairs = [(row["first"], row["second"]) for row in rows_of(report, "pairs")]
    assert pairs == [("D rules+memory", "D mine"), ("A baseline", "D rules+memory")]
    compared = [line for line in report.verdict if " vs " in line]
    assert compared[0].startswith("D mine vs D: no significant difference, +50.0 points")
    assert rows_of(report, "pairs")[0]["differ in"] == "nodes (ours | scf from own:scf)"
    (pair,) = [row for row in rows_of(package.report(runs, against="A"), "pairs")
               if row["second"] == "D mine"]  # fmt: skip
    assert pair["first"] == "A baseline" and pair["second won more often"] == 8


def test_equal_runs_give_mcnemars_test_of_one_run(tmp_path: Path) -> None:
    runs = [tuning(tmp_path, n, TUNINGS[0]) for n in range(3)]
    (pair,) = rows_of(package.report(runs), "pairs")
    assert pair["permutation p"] == pytest.approx(mcnemar(0, 5))
    main = rows_of(package.report(runs), "main")
    assert [row["SD over runs"]["value"] for row in main] == [0.0, 0.0]


def test_scores_are_summed_over_runs(tmp_path: Path) -> None:
    scores = [[(40, 55), (0, 10), (100, 30), (7, 12)], [(40, 45), (0, 100), (60, 30), (-100, 12)]]
    folders = []
    for number, tasks in enumerate(scores):
        lines = {(arm, i): {"score": float(task[side]), "env": "scienceworld", "split": "test"}
                 for i, task in enumerate(tasks) for side, arm in enumerate("AD")}  # fmt: skip
        wins = {"A": [0] * 4, "D": [0] * 4}
        folders.append(tuning(tmp_path, number, wins, lines=lines, env="scienceworld",
                              split="test"))  # fmt: skip
    report = package.report(folders)
    (pair,) = rows_of(report, "pairs")
    gains = [sum(run[i][1] - max(0, run[i][0]) for run in scores) for i in range(4)]
    assert pair["permutation p of scores"] == pytest.approx(brute_force(gains))
    assert pair["second - first"]["value"] == pytest.approx(sum(gains) / 8)
    assert rows_of(report, "main")[1]["score (floored)"]["value"] == pytest.approx(294 / 8)


def test_types_failures_and_causes_over_all_runs(tmp_path: Path) -> None:
    report = tunings(tmp_path, logs=True)
    failures = rows_of(report, "failures")[0]
    assert (failures["A baseline"], failures["D rules+memory"]) == (22, 7)
    types = rows_of(report, "types")[1]
    assert types["all (8)"]["share"] == pytest.approx(17 / 24)
    # Tasks 0 and 6 are of the first goal type: won 3 times and once by D.
    assert types["look at obj in light (2)"]["share"] == pytest.approx(4 / 6)
    assert rows_of(report, "causes")[-1]["A baseline"] == 22


def test_the_learning_curve_is_a_table_over_runs(tmp_path: Path) -> None:
    wins = [{"S": [0, 0, 0, 1], "C round 1": [0, 0, 1, n], "C round 2": [1, 1, 1, 1],
             "round 0": [1, 0, 0, 0], "round 2": [1, 1, n, 1]} for n in (0, 1)]  # fmt: skip
    report = package.report([tuning(tmp_path, n, row, conditions=ROUNDS)
                             for n, row in enumerate(wins)])  # fmt: skip
    before, first, second = rows_of(report, "rounds")
    c, d = "C memory", "D rules+memory"
    assert [before[c]["share"], first[c]["share"]] == [0.25, 0.375]  # S begins the curve
    assert first[d] == "-" and second[d]["share"] == 0.875
    single = package.report(tmp_path / "run0")
    assert rows_of(single, "rounds")[2][d]["share"] == 0.75


ROUNDS = {
    f"C round {n}": {**contexts("C")["C"], "memory_file": f"memory.round{n}.jsonl"} for n in (1, 2)
} | contexts("S", "round 0", "round 2")


def test_an_arm_is_compared_on_the_tasks_that_every_run_has_finished(tmp_path: Path) -> None:
    folders = [tuning(tmp_path, n) for n in range(3)]
    file = folders[1] / "episodes.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines = [line for line in lines if (line["condition"], line["index"]) != ("D", 7)]
    lines[0] |= {"failure_mode": "model_error", "success": False}  # A in the first task
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = package.report(folders)
    first, second = rows_of(report, "main")
    assert (first["episodes"], first["errors"], first["not run"]) == (21, 1, 0)
    assert (second["episodes"], second["not run"], second["won"]) == (21, 1, 15)
    notes = " ".join(report.only(["main"]).tables[0].notes)
    assert "without an error: A 7, D 7 of 8 tasks." in notes
    assert rows_of(report, "pairs")[0]["tasks"] == 6
    assert "47 of 48 episodes are done" in " ".join(report.verdict)
    errors = {row["failure mode"]: row["A baseline"] for row in rows_of(report, "failures")}
    assert errors["model error"] == 1


def test_runs_of_the_same_arms_over_other_tasks_join(tmp_path: Path) -> None:
    """Two halves of one experiment are as good as the whole."""
    whole = tuning(tmp_path, 0, model="m")
    halves = [shutil.copytree(whole, tmp_path / name) for name in ("first", "second")]
    for folder, tasks in zip(halves, (range(5), range(5, 8)), strict=True):
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["tasks"] = [manifest["tasks"][number] for number in tasks]
        (folder / "manifest.json").write_text(json.dumps(manifest))
        lines = (folder / "episodes.jsonl").read_text().splitlines()
        kept = [line for line in lines if json.loads(line)["index"] in tasks]
        (folder / "episodes.jsonl").write_text("".join(f"{line}\n" for line in kept))
    report, alone = package.report(halves), package.report(whole)
    assert report.run.pooled and report.run.complete
    for joined, single in zip(rows_of(report, "main"), rows_of(alone, "main"), strict=True):
        assert joined["success rate"] == single["success rate"] and joined["not run"] == 0
    (pair,), (same,) = rows_of(report, "pairs"), rows_of(alone, "pairs")
    assert pair["permutation p"] == same["McNemar p"] and pair["tasks"] == 8
    assert [row["episodes"] for row in rows_of(report, "runs")] == [5, 3, 5, 3]


def test_arms_that_not_every_run_has_are_left_out_in_one_line(tmp_path: Path) -> None:
    more = {**TUNINGS[1], "B": [1] * 8}
    folders = [tuning(tmp_path, 0), tuning(tmp_path, 1, more)]
    report = package.report(folders)
    assert report.run.conditions == ["A", "D"]
    assert "Left out, because not every run has the arm: B (tuned-1)." in report.verdict


def test_other_commits_are_said_plainly(tmp_path: Path) -> None:
    folders = [tuning(tmp_path, n, commit=c) for n, c in enumerate(("abc1234", "fff0000"))]
    report = package.report(folders)
    text = "the commits differ: abc1234 (tuned-0); fff0000 (tuned-1)"
    assert text in report.origin[0] and f"Not one version: {text}." in report.verdict


@pytest.mark.parametrize(
    ("changes", "arms", "pooled"),
    [
        ({"settings_of": {"seed": 5}, "model": "tuned-0"}, 2, True),
        ({"model": "tuned-0"}, 2, True),  # other weights under the same name
        ({"model": "tuned-0", "commit": "fff0000"}, 4, False),
        ({"settings_of": {"temperature": 0.7}}, 4, False),
        ({"settings_of": {"scf": "off"}}, 4, False),
        ({"hashes": {"memory": {"D": "x" * 64}}}, 4, False),
        ({"settings": {"max_steps": 30}}, 4, False),
        ({"wins": {**TUNINGS[1], "B": [1] * 8}, "model": "tuned-0"}, 5, False),
        ({"wins": {"B": [1] * 8, "C": [1] * 8}}, 4, False),
    ],
)
def test_only_the_model_and_the_seed_may_differ(
    tmp_path: Path, changes: dict[str, Any], arms: int, pooled: bool
) -> None:
    hashes = {"hashes": {"memory": {"D": "m" * 64}}}
    folders = [tuning(tmp_path, 0, **hashes), tuning(tmp_path, 1, **{**hashes, **changes})]
    run = read_joined(folders)
    assert (len(run.conditions), run.pooled) == (arms, pooled)
    assert not read_joined(folders, separate=True).pooled


def test_runs_are_named_by_model_seed_or_folder(tmp_path: Path) -> None:
    assert run_names(tunings(tmp_path / "models").run) == ["tuned-0", "tuned-1", "tuned-2"]
    folders = [tuning(tmp_path, n, model="m", settings_of={"seed": n}) for n in range(2)]
    assert run_names(read_joined(folders)) == ["seed 0", "seed 1"]
    folders = [tuning(tmp_path / "same", n, model="m") for n in range(2)]
    assert run_names(read_joined(folders)) == ["run0", "run1"]


def test_every_format_has_every_table_and_the_page_leads_to_each_run(
    rpms: Rpms, tmp_path: Path
) -> None:
    report = tunings(tmp_path, logs=True)
    names = [table.id for table in report.tables]
    assert {"main", "runs", "types", "pairs", "failures", "causes", "steps", "tokens"} <= {*names}
    folders = [part.folder for part in report.run.parts]
    for form, text in (("csv", report.as_csv()), ("latex", report.as_latex()),
                       ("markdown", report.as_markdown())):  # fmt: skip
        assert rpms("report", *folders, "--format", form).out == text
        assert "62.5-75.0" in text and "tuned-0, tuned-1, tuned-2" in text
    done = rpms("report", *folders, "--table", "pairs")
    assert done.code == 0 and "permutation p" in done.out
    pages = [text for _, text in step_pages(report, "report.html")]
    assert sum(page.count(' id="log-') for page in pages) == 48 and len(pages) == 8
    for episode in report.run.judged("D"):
        log = read_log(report.run.log_file(episode))
        assert log and len(log["steps"]) == episode.steps


@pytest.mark.engine
def test_real_runs_of_two_seeds_and_their_columns_are_explained(play_once: Play) -> None:
    folders = [
        play_once(f"seed{seed}", "--split", "generated_unseen", "--conditions", "A,D",
                  "--limit", "2", "--seed", str(seed))
        for seed in (1, 2)
    ]  # fmt: skip
    report = package.report(folders)
    assert report.run.pooled and report.run.complete
    single = [package.report(folder) for folder in folders]
    wins = [[row["won"] for row in rows_of(each, "main")] for each in single]
    by_run = [row["won"] for row in rows_of(report, "runs")]
    assert by_run == [won for arm in zip(*wins, strict=True) for won in arm]
    plain = {"", "condition", "tasks", "first", "second", "all", "rules"}
    plain |= {condition_title(name).lower() for name in report.run.conditions}
    named = {"types", "causes"}  # columns of types and causes
    columns = {c.lower() for table in report.tables if table.id not in named for c in table.columns}
    assert sorted(columns - plain - explanations().keys()) == []
