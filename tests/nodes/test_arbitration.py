"""Which memories pass: by state, and by rules, the paper's conflicts settled its own way."""

from __future__ import annotations

from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.envs.manuals import load_commands, load_manual
from rpms.memory_store import Note
from rpms.memory_store.grounding import GroundingContext, ground
from rpms.memory_store.methods.note_method import candidate
from rpms.nodes.arbitration import Arbiter, arbitration
from rpms.nodes.scf import scf
from rpms.nodes.state import EpisodeState
from rpms.rules.conditions import DecisionPoint
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.goal import GoalSpec, SubGoal
from rpms.vocabulary.recall import Recall, new_advice, new_recall, surviving
from tests.memory_store.methods.samples import request
from tests.scripted_episode import under

ENV = get_environment("alfworld")
PLACES = ["fridge 1", "countertop 1", "microwave 1", "cabinet 1", "diningtable 1"]
COOL = "cool some apple and put it in countertop"
LOOK = "examine the apple with the desklamp"


def belief(**fields: Any) -> Belief:
    return Belief(**{**empty_belief(), "places": PLACES, **fields})  # type: ignore[typeddict-item]


def snippet(*actions: str) -> Recall:
    return new_recall({"type": "success"}, 1.0, 1, new_advice(list(actions)))


def of_kinds(*actions: str, kind: str = "success") -> Recall:
    return new_recall({"type": kind}, 1.0, 1, new_advice(list(actions), by_kind=True))


def lesson(action: str, *needs: str) -> Recall:
    """A lesson; without a need it is printed as a warning of the action."""
    return new_recall({"type": "failure"}, 1.0, 1, new_advice([action], needs=[*needs]))


def judge(
    recall: Recall, sentence: str, now: Belief, mode: str = "hard+soft", **settings: Any
) -> Recall:
    goal = ENV.parse_goal(sentence)
    state = EpisodeState(
        env="alfworld", goal=goal, belief=now, recalls=[recall], ineffective=[], played_in={},
        sub_goal=ENV.sub_goal(goal, now, []),
    )  # fmt: skip
    context = RunContext(arbitration=mode, **settings)  # type: ignore[arg-type]
    return arbitration(under(state, context))["recalls"][0]


HOLDING = belief(location="fridge 1", holding=["apple 1"], containers={"fridge 1": "open"},
                 searched=["fridge 1"])  # fmt: skip


# Whether the countertop is at this very spot, and what is on it, nobody has looked yet.
UNSURE = belief(location="cabinet 1", searched=["cabinet 1"])


LAMP = belief(location="fridge 1", holding=["apple 1"], searched=["fridge 1"],
              last_seen={"desklamp 1": "fridge 1"}, visible=["desklamp 1"])  # fmt: skip


WRONG_THING = belief(**{**LAMP, "holding": ["mug 1"]})


@pytest.mark.parametrize(
    ("recall", "sentence", "now", "kind", "rule", "words"),
    [
        # Putting the apple into the fridge before cooling; cooling in hand is fine.
        (snippet("put apple 1 in/on fridge 1", "cool apple 1 with fridge 1"), COOL, HOLDING,
         "forbidden", "O-COOL-001", "'put apple 1 in/on fridge 1' is forbidden for this goal"),
        (snippet("cool apple 1 with fridge 1", "go to countertop 1"), COOL, HOLDING, "", "", ""),
        # Unless the fridge is the destination.
        (snippet("put apple 1 in/on fridge 1"), "put a apple in fridge", HOLDING, "", "", ""),
        # What cannot work, in the first step or a later one.
        (snippet("take apple 1 from fridge 1"), COOL,
         belief(location="cabinet 1", spots={"cabinet 1": ["cabinet 1"]}),
         "impossible", "O-ACT-004", "'take apple 1 from fridge 1' cannot work: it needs you to be "
         "at fridge 1, and you are at cabinet 1"),
        (snippet("go to microwave 1", "go to shelf 9", "take apple 1 from shelf 9"), COOL,
         belief(location="cabinet 1"), "impossible", "O-ACT-001",
         "'go to shelf 9' cannot work: it needs shelf 9 to be a place of this room"),
        # What the belief does not settle, in the first step and on the way.
        (snippet("take apple 1 from countertop 1"), COOL, UNSURE, "in doubt", "O-ACT-004",
         "check first that you are at countertop 1; that is not known yet"),
        (snippet("cool apple 1 with fridge 1", "go to microwave 1",
                 "put apple 1 in/on microwave 1"),
         "cool some apple and put it in microwave", HOLDING, "in doubt", "O-ACT-005",
         "check first that microwave 1 is open (if it has a door); that is not known yet"),
        # A step that is done already is needless, and no conflict.
        (snippet("go to fridge 1", "cool apple 1 with fridge 1"), COOL, HOLDING, "", "", ""),
        (snippet("go to cabinet 1", "cool apple 1 with fridge 1"), COOL, HOLDING, "impossible",
         "O-ACT-007", "'cool apple 1 with fridge 1' cannot work: it needs you to be at fridge 1, "
         "and you are at cabinet 1"),
        (snippet("dance"), COOL, HOLDING, "impossible", "",
         "'dance' is not one of the available actions"),
        # The lamp lights nothing that is held: the goal is no nearer.
        (snippet("use desklamp 1"), LOOK, WRONG_THING, "cannot reach the goal", "O-ACT-009",
         "'use desklamp 1' leaves the sub-goal free_hand where it is"),
        (snippet("use desklamp 1"), LOOK, LAMP, "", "", ""),
        # The order of steps: placed before it is cool, and after it was cooled on the way.
        (snippet("go to countertop 1", "put apple 1 in/on countertop 1"), COOL, HOLDING,
         "forbidden", "D-TRANS-003", "'put apple 1 in/on countertop 1' is forbidden for this goal"),
        (snippet("cool apple 1 with fridge 1", "go to countertop 1",
                 "put apple 1 in/on countertop 1"), COOL, HOLDING, "", "", ""),
        # A step of other goals, and one that may be taken under any.
        (snippet("go to microwave 1", "heat apple 1 with microwave 1"), COOL, HOLDING,
         "foreign to this goal", "O-ACT-006", "is no step of pick_cool"),
        (snippet("go to countertop 1", "put apple 1 in/on countertop 1"), LOOK, HOLDING,
         "", "", ""),
        # Where nothing here is known to be meant, what holds for the whole kind counts, no more.
        (of_kinds("cool apple with fridge", "go to countertop"), COOL, UNSURE, "", "", ""),
        (of_kinds("cool apple with cabinet"), COOL, UNSURE, "impossible", "O-ACT-007", "fridge"),
        (of_kinds("put apple in/on fridge"), COOL, UNSURE, "forbidden", "O-COOL-001", "forbidden"),
        (of_kinds("cool apple with fridge", kind="failure"), COOL, HOLDING, "", "", ""),
        # A lesson that only says what is needed contradicts nothing.
        (lesson("cool apple 1 with fridge 1", "you to be at fridge 1"), COOL, HOLDING, "", "", ""),
        # A warning of what a rule demands, and of what is merely possible.
        (lesson("cool apple 1 with fridge 1"), COOL, HOLDING, "against the procedure", "O-ACT-007",
         "the sub-goal cool_object needs 'cool apple 1 with fridge 1'"),
        (lesson("go to cabinet 1"), COOL, HOLDING, "in doubt", "O-ACT-001",
         "by the rules 'go to cabinet 1' can work now"),
        (lesson("go to fridge 1"), COOL, belief(location="cabinet 1", holding=["apple 1"]),
         "against the procedure", "O-ACT-001", "the sub-goal cool_object needs 'go to fridge 1'"),
        # Whether it can work is not known: the warning says what to find out.
        (lesson("take apple 1 from countertop 1"), COOL, UNSURE, "in doubt", "O-ACT-004",
         "check first that you are at countertop 1; that is not known yet"),
        (lesson("open cabinet 1"), COOL, belief(location="cabinet 1", holding=["apple 1"]),
         "in doubt", "O-ACT-002", "check first that cabinet 1 is closed; that is not known yet"),
        (lesson("take apple 2 from cabinet 1"), COOL, HOLDING, "", "", ""),
        # Against what is demanded elsewhere; the lamp is a destination.
        (lesson("cool apple 1 with fridge 1"), COOL,
         belief(location="cabinet 1", holding=["apple 1"]), "against the procedure", "O-ACT-007",
         "the sub-goal cool_object needs 'cool apple 1 with fridge 1'"),
        (lesson("use desklamp 1"), LOOK, LAMP, "against the procedure", "O-ACT-009",
         "the sub-goal use_lamp needs 'use desklamp 1'"),
        # A rule forbids it as well.
        (lesson("put apple 1 in/on fridge 1"), COOL, HOLDING, "", "", ""),
    ],
)  # fmt: skip
def test_conflicts(
    recall: Recall, sentence: str, now: Belief, kind: str, rule: str, words: str
) -> None:
    judged = judge(recall, sentence, now)
    assert (judged["conflict"], judged["rule"]) == (kind, rule)
    hard = bool(kind) and kind != "in doubt"
    assert judged["dropped_by"] == ("arbitration" if hard else "")
    reason, warning = judged["reason"], judged["warning"]
    assert (bool(reason), bool(warning)) == (hard, bool(kind) and not hard)
    assert words in reason + warning


def test_a_lesson_is_judged_as_it_is_printed() -> None:
    """The paper's AVOID is an order, also where it says what is needed; our form is a need."""
    told = lesson("cool apple 1 with fridge 1", "you to be at fridge 1")
    assert judge(told, COOL, HOLDING)["conflict"] == ""
    assert judge(told, COOL, HOLDING, memory_form="roles")["conflict"] == ""
    assert judge(told, COOL, HOLDING, memory_form="recorded")["conflict"] == "against the procedure"


def test_names_of_another_home_are_judged_as_they_are_printed() -> None:
    """Only advice in the names of this scene claims to reach the goal."""
    told = snippet("go to shelf 9", "use desklamp 4")
    assert judge(told, LOOK, LAMP, memory_form="recorded")["conflict"] == "impossible"
    idle = snippet("use desklamp 1")
    assert judge(idle, LOOK, WRONG_THING, memory_form="recorded")["conflict"] == ""


MELT = (
    "Your task is to melt tin. First, focus on the substance. Then, take actions that will cause "
    "it to change its state of matter."
)
MEASURE = (
    "Your task is to measure the melting point of tin, which is located around the kitchen. First, "
    "focus on the thermometer. Next, focus on the tin. If the melting point of tin is above 50.0 "
    "degrees celsius, focus on the red box. If the melting point of tin is below 50.0 degrees "
    "celsius, focus on the blue box. The boxes are located around the kitchen."
)


def judge_fatal(action: str, sentence: str, step: str, target: str) -> Recall:
    recall = new_recall({"type": "critical_failure"}, 2.0, 1, new_advice([action]))
    goal = get_environment("scienceworld").parse_goal(sentence)
    now = belief(location="kitchen", visible=["stove", "tin", "lead", "red box", "blue box"])
    state = EpisodeState(
        env="scienceworld", goal=goal, belief=now, recalls=[recall], ineffective=[], played_in={},
        sub_goal=SubGoal(name=step, target=target, progress=20),
    )  # fmt: skip
    return arbitration(state)["recalls"][0]


BOX = "red box (above 50.0 degrees celsius) or blue box (below 50.0 degrees celsius)"


@pytest.mark.parametrize(
    ("action", "sentence", "step", "target", "dropped", "warning"),
    [
        # The rules forbid it too; the task names it; it may be the answer; it cannot be yet.
        ("focus on stove", MELT, "focus_object", "tin", False, ""),
        ("focus on lead", MELT, "focus_object", "tin", False, ""),
        ("focus on tin", MELT, "focus_object", "tin", True, ""),
        ("focus on red box", MEASURE, "answer_box", BOX, False,
         "check first whether this task asks for exactly that"),
        ("focus on red box", MEASURE, "find_object", "tin", False, ""),
    ],
)  # fmt: skip
def test_critical_failures(
    action: str, sentence: str, step: str, target: str, dropped: bool, warning: str
) -> None:
    judged = judge_fatal(action, sentence, step, target)
    assert (judged["dropped_by"], judged["warning"]) == ("arbitration" if dropped else "", warning)
    assert judged["rule"] == ("E-ACT-005" if dropped or warning else "")


@pytest.mark.parametrize(
    ("mode", "hard", "soft"),
    [
        ("hard+soft", ("arbitration", False), True),
        ("hard", ("arbitration", False), False),
        ("soft", ("", True), True),
        ("none", ("", False), False),
    ],
)
def test_modes(mode: str, hard: tuple[str, bool], soft: bool) -> None:
    judged = judge(snippet("put apple 1 in/on fridge 1"), COOL, HOLDING, mode)
    assert (judged["dropped_by"], bool(judged["warning"])) == hard
    note = Note(id="n", kind="insight", text="Put the mug in the microwave.")
    noted = judge_note(note, arbitration=mode)
    assert (noted["dropped_by"], bool(noted["warning"])) == ("", mode != "none")
    judged = judge(snippet("take apple 1 from countertop 1"), COOL, UNSURE, mode)
    assert (judged["dropped_by"], bool(judged["warning"])) == ("", soft)


def test_the_papers_example_goes_whatever_thing_it_was_recorded_with() -> None:
    """Goal: cool a cup. An entry of another home puts a mug into the fridge to cool it."""
    goal = ENV.parse_goal("cool some cup and put it in countertop")
    now = belief(location="fridge 1", holding=["cup 1"], containers={"fridge 1": "open"},
                 searched=["fridge 1"])  # fmt: skip
    entry = {
        "type": "success", "sub_goal_type": "cool_object", "state_signature": "holding=mug 2",
        "goal_signature": "pick_cool_then_place_in_recep:mug:cool:desk",
        "actions": ["put mug 2 in/on fridge 3"],
    }  # fmt: skip
    moment = GroundingContext(
        ENV, load_commands("alfworld"), goal, ENV.sub_goal(goal, now, []), now
    )
    advice = ground(entry, moment).advice
    # The agent is there already: only what is ahead is judged, and printed.
    assert advice["done"] == ["go to fridge 1"]
    assert advice["actions"] == advice["printed"] == ["put cup 1 in/on fridge 1"]
    sentence = "cool some cup and put it in countertop"
    judged = judge(new_recall(entry, 1.0, 1, advice), sentence, now)
    assert (judged["dropped_by"], judged["rule"]) == ("arbitration", "O-COOL-001")


def test_an_entry_that_scf_dropped_is_left_alone() -> None:
    gone = snippet("put apple 1 in/on fridge 1")
    gone["dropped_by"], gone["reason"] = "scf", "the hand"
    assert judge(gone, COOL, HOLDING) == gone


# Other people's memories: what a text advises is held against the rules.


def judge_note(
    note: Note, goal: str = "put a hot mug in cabinet.", here: bool = False, **settings: Any
) -> Recall:
    recall_request = request(goal)
    state = EpisodeState(
        env="alfworld", goal=recall_request.moment.goal, belief=recall_request.moment.belief,
        sub_goal=recall_request.moment.sub_goal, ineffective=[], played_in={},
        recalls=[candidate(note, recall_request, here=here)],
    )  # fmt: skip
    return arbitration(under(state, RunContext(**settings)))["recalls"][0]


@pytest.mark.parametrize(
    ("text", "options", "rule", "words"),
    [
        ("Put the mug in the microwave.", {}, "D-HEAT-001", "is forbidden for this goal"),
        ("put mug 1 in/on microwave 1", {}, "D-HEAT-001", "is forbidden for this goal"),
        ("Put it in a microwave and close the door", {}, "D-HEAT-001", "is forbidden"),
        ("Put the mug in the microwave.", {"goal": "put a mug in microwave."}, "", ""),
        ("Do not put the mug in the microwave.", {}, "", ""),
        # What can never work with such things; of a toaster, which is not here, nothing is said.
        ("heat the mug with the fridge", {}, "O-ACT-006",
         "'heat mug with fridge' cannot work: it needs fridge to be a microwave"),
        ("heat the mug with the toaster", {}, "", ""),
        # The moment is only warned about, and only in this home.
        ("heat mug 1 with microwave 1", {}, "", ""),
        ("heat mug 1 with microwave 1", {"here": True}, "O-ACT-006",
         "'heat mug 1 with microwave 1' cannot work yet: it needs you to hold mug 1, and you hold "
         "nothing; it needs you to be at microwave 1, and you are at none of the places yet"),
    ],
)  # fmt: skip
def test_notes(text: str, options: dict[str, Any], rule: str, words: str) -> None:
    note = Note(id="n", kind="insight", text=text)
    marked = judge_note(note, **options)
    assert (marked["dropped_by"], marked["rule"]) == ("", rule), "a note is marked and stays"
    assert words in marked["warning"] and bool(marked["warning"]) == bool(rule)


def test_a_trajectory_is_judged_as_it_would_be_done_here() -> None:
    steps = ["take egg 1 from desk 1", "put egg 1 in/on microwave 1", "heat egg 1 with fridge 1"]
    note = Note(id="n", kind="t", text="a story", goal="put a hot egg in shelf.", actions=steps)
    judged = judge_note(note)
    assert judged["dropped_by"] == ""
    # Every bad step is named, not the first alone.
    assert "'put mug 1 in/on microwave 1' is forbidden" in judged["warning"]
    words = "; 'heat mug 1 with fridge 1' cannot work: it needs fridge 1 to be a microwave"
    assert judged["warning"].endswith(words)


# The state filter.


CUP = "cool some mug and put it in countertop"


def filtered(
    recalls: list[Recall], now: Belief, mode: str = "occupancy", step: SubGoal | None = None
) -> list[Recall]:
    goal = ENV.parse_goal(CUP)
    state = EpisodeState(
        env="alfworld",
        goal=goal,
        belief=now,
        recalls=recalls,
        sub_goal=step or ENV.sub_goal(goal, now, []),
    )
    return scf(under(state, RunContext(scf=mode)))["recalls"]  # type: ignore[arg-type]


def in_state(signature: str, *actions: str) -> Recall:
    entry = {"type": "success", "state_signature": signature}
    return new_recall(entry, 1.0, 1, new_advice([*actions]))


FULL = in_state("holding=mug 2", "go to cabinet 1")
EMPTY = in_state("holding=none|open=fridge 1", "go to fridge 1")
SCHEMA = new_recall({"type": "schema"}, 1.0, 1, new_advice(["cool mug 1 with fridge 1"]))


def test_a_schema_of_what_such_things_rule_out_is_removed() -> None:
    """What an action needs now is the schema's own word; that a kind cannot do it, the rules'."""
    assert judge(SCHEMA, COOL, belief())["dropped_by"] == ""
    idle = new_recall({"type": "schema"}, 1.0, 1, new_advice(["cool apple 1 with microwave 1"]))
    removed = judge(idle, COOL, HOLDING)
    words = "'cool apple 1 with microwave 1' cannot work: it needs microwave 1 to be a fridge"
    assert (removed["dropped_by"], removed["reason"]) == ("arbitration", words)
    assert judge(idle, COOL, HOLDING, mode="none")["dropped_by"] == ""


@pytest.mark.parametrize(
    ("held", "unfit", "fit", "reason"),
    [
        ([], FULL, EMPTY, "hand"),
        (["mug 1"], EMPTY, FULL, "recorded with an empty hand, holding mug 1 now"),
    ],
)
def test_hand_occupancy_must_match(
    held: list[str], unfit: Recall, fit: Recall, reason: str
) -> None:
    first, *others = filtered([unfit, fit, SCHEMA], belief(holding=held))
    assert first["dropped_by"] == "scf" and reason in first["reason"]
    assert others == [fit, SCHEMA] and unfit["dropped_by"] == "", "the input is not changed"


NEAR = belief(location="fridge 1", holding=["mug 1"])


@pytest.mark.parametrize(
    ("recall", "reason"),
    [
        (in_state("holding=mug 2", "go to fridge 1"),
         "'go to fridge 1' cannot work now: it needs you to be somewhere else than fridge 1, "
         "and you are at fridge 1 already"),
        # The first step is asked for, and what comes later is the arbiter's.
        (in_state("holding=mug 2", "cool mug 1 with fridge 1", "put mug 1 in/on cabinet 1"), ""),
        (in_state("holding=mug 2", "put mug 1 in/on cabinet 1"),
         "'put mug 1 in/on cabinet 1' cannot work now: it needs you to be at cabinet 1, "
         "and you are at fridge 1"),
        (lesson("heat mug 1 with microwave 1"), ""),  # still impossible
        (lesson("cool mug 1 with fridge 1"), "'cool mug 1 with fridge 1' can work now"),
    ],
)  # fmt: skip
def test_preconditions_mode_asks_what_the_state_makes_of_the_advice(
    recall: Recall, reason: str
) -> None:
    assert not filtered([recall], NEAR)[0]["dropped_by"]
    (checked,) = filtered([recall], NEAR, "preconditions")
    assert (checked["dropped_by"], checked["reason"]) == ("scf" if reason else "", reason)


def test_what_has_begun_passes_filter_and_arbiter_from_where_it_stands() -> None:
    """Grounding leaves out the steps behind; in either filter the rest is kept, unwarned."""
    way = ["go to fridge 1", "cool mug 1 with fridge 1", "go to countertop 1",
           "put mug 1 in/on countertop 1"]  # fmt: skip
    entry = {
        "type": "success", "state_signature": "holding=mug 2", "actions": way,
        "goal_signature": "pick_cool_then_place_in_recep:mug:cool:countertop",
    }  # fmt: skip
    goal = ENV.parse_goal(CUP)
    cooled = belief(**{**NEAR, "flags": {"mug 1": "cool"}})
    for now, behind in ((NEAR, 1), (cooled, 2)):
        step = ENV.sub_goal(goal, now, [])
        advice = ground(
            entry, GroundingContext(ENV, load_commands("alfworld"), goal, step, now)
        ).advice
        assert (advice["done"], advice["printed"]) == (way[:behind], way[behind:])
        recall = new_recall(entry, 1.0, 1, advice)
        for mode in ("occupancy", "preconditions"):
            assert filtered([recall], now, mode) == [recall]
        assert judge(recall, CUP, now) == recall


def test_preconditions_mode_asks_whether_the_first_action_can_work() -> None:
    now = belief(location="fridge 1")
    away, near = (in_state("holding=none", f"go to {place}") for place in ("shelf 7", "cabinet 1"))
    assert not filtered([away], now)[0]["dropped_by"]
    checked = filtered([away, near], now, "preconditions")
    assert checked[0]["dropped_by"] == "scf"
    assert checked[0]["reason"] == (
        "'go to shelf 7' cannot work now: it needs shelf 7 to be a place of this room"
    )
    assert surviving(checked) == [near]


def test_the_state_filter_judges_notes_that_tell_of_a_state() -> None:
    signatures = (None, "holding=none", "holding=mug 1")
    notes = [Note(id="n", kind="k", text="x", state_signature=text) for text in signatures]
    checked = filtered([candidate(note, request()) for note in notes], belief(holding=["mug 1"]))
    assert [recall["dropped_by"] for recall in checked] == ["", "scf", ""]


def test_looking_and_waiting_are_foreign_to_no_goal() -> None:
    science, manual = get_environment("scienceworld"), load_manual("scienceworld")
    for family in science.goal_types():
        goal = GoalSpec(sentence="", type=family, object="water", state=None, count=1,
                        destination="", signature="")  # fmt: skip
        point = DecisionPoint(manual, goal, SubGoal(name="", target="", progress=0), empty_belief())
        arbiter = Arbiter(science, point, "grounded")
        assert all(arbiter.goal_conflict(act) is None for act in ("wait", "look at water"))
