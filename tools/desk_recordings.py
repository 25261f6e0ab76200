"""Audits recorded conversations of a desk, and says what each refusal comes down to.

    python -m tools.desk_recordings airline conversations.jsonl.xz [RULES]

A call that changes something and is refused was against a rule by what the agent had seen, or the
agent had not looked. For the second kind the call is judged again by the facts, which allow it or
refuse it too: the conversation is played on tau2's database, each call that ran is carried out, and
before a call that changes something the missing look-ups are made, so that they see the database as
the call finds it.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from langchain_core.messages import HumanMessage

from rpms.envs import get_environment
from rpms.envs.tau2.desk import ServiceDesk
from rpms.guard.audit import AuditedCall, audit_conversation, read_messages
from rpms.guard.conversation import ConversationTracker, turns_of
from tools.desk_gold import DeskConversation


class RecordedCall(NamedTuple):
    """A call that would change something.

    Attributes:
        conversation: the id of the conversation.
        rewarded: the conversation earned the benchmark's reward.
        found: the audit's verdict.
        rules: the rules that refuse the call by the facts.
    """

    conversation: str
    rewarded: bool
    found: AuditedCall
    rules: tuple[str, ...]

    @property
    def kind(self) -> str:
        """What the verdict comes down to."""
        if self.found.verdict == "fine":
            return "rejected by the tool" if self.found.rejected else "fine"
        if self.found.rejected:
            return "refused, and rejected by the tool too"
        if self.found.verdict == "against":
            return "refused: against a rule"
        return f"refused: uninformed, {'against a rule' if self.rules else 'fine'} by the facts"


def changes_of(desk: ServiceDesk, log: Path, rules: str = "") -> Iterator[RecordedCall]:
    """Every call of a log that would change something."""
    tracker = ConversationTracker.open(desk, rules)
    data = log.read_bytes()
    for line in (lzma.decompress(data) if log.suffix == ".xz" else data).splitlines():
        entry = json.loads(line)
        messages = read_messages(entry, str(log))
        verdicts = iter([*audit_conversation(tracker, messages)])
        facts = DeskConversation(desk, "", tracker=tracker)
        facts.state = tracker.begin()
        for turn in turns_of(messages):
            if isinstance(turn.message, HumanMessage):
                facts.state = tracker.read(facts.state, [turn.message])
            for _ in turn.calls:
                found = next(verdicts)
                call, broken = found.call, tuple[str, ...]()
                if tracker.changes(call.tool):
                    facts.inform(call)
                    broken = tuple(refusal.rule for refusal in facts.refusals(call))
                    yield RecordedCall(entry["id"], entry["reward"] == 1.0, found, broken)
                if call.tool in tracker.manual.by_name and not found.rejected:
                    facts.run(call)


def main() -> None:
    """Print each refused call and the totals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("desk", help="airline or retail")
    parser.add_argument("log", type=Path, help="conversations, packed by xz or not")
    parser.add_argument("rules", nargs="?", default="", help="a folder laid over the rules")
    asked = parser.parse_args()
    desk = cast(ServiceDesk, get_environment(asked.desk))
    calls = [*changes_of(desk, asked.log, asked.rules)]
    for each in calls:
        if each.found.verdict != "fine":
            reward = "reward" if each.rewarded else "no reward"
            by_facts = each.rules if each.found.verdict == "uninformed" else ()
            broken = f", then {', '.join(by_facts)}" if by_facts else ""
            print(f"{each.conversation} ({reward}), call {each.found.number}: {each.found.call}")
            print(f"    {each.kind} [{each.found.rule}{broken}]")
    for rewarded in (True, False):
        kinds = Counter[Any](each.kind for each in calls if each.rewarded == rewarded)
        title = "with" if rewarded else "without"
        print(f"conversations {title} the reward: {kinds.total()} calls that change something")
        for kind, number in sorted(kinds.items()):
            print(f"    {number:4} {kind}")


if __name__ == "__main__":
    main()
