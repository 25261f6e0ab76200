"""``rpms audit``: checks the calls of recorded conversations against the rules."""

from __future__ import annotations

import json
import lzma
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, NamedTuple

import typer

from rpms.commands.options import RulesOption
from rpms.vocabulary.output import open_console, print_safe, print_wrapped, quantity

if TYPE_CHECKING:
    from rich.progress import Progress

    from rpms.guard.audit import AuditedCall

LONG = 1_000_000
"""A log with more bytes than this gets a progress bar."""


class Conversation(NamedTuple):
    """One conversation of a log: its name, its file and line, and its data or why it has none."""

    name: str | int
    where: str
    data: Any


def audit(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="A JSONL file with OpenAI's 'messages' in each line, packed with xz or not, or a "
            "folder that rpms.Recorder wrote.",
        ),
    ],
    env: Annotated[
        str,
        typer.Option(
            "--env", help="The environment whose rules apply, by name or MODULE:ATTRIBUTE."
        ),
    ],
    rules: RulesOption = "",
    unknown: Annotated[
        Literal["refuse", "allow"],
        typer.Option(help="Refuse or allow calls of tools that are not in the manual."),
    ] = "refuse",
    strict: Annotated[
        bool, typer.Option("--strict", help="Also exit with status 1 for an uninformed call.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Also print calls that are fine.")] = (
        False
    ),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON for every call.")
    ] = False,
) -> None:
    """Check every tool call of recorded conversations against the rules.

    A call is fine, against a rule, or uninformed: the agent had seen no evidence that the rule was
    kept, and none that it was broken. A call that a guard stopped is fine.

    A line that cannot be read is named, and the others are checked.

    The exit status is 2 if a line or the log cannot be read, 1 if a call is against a rule, and 0
    otherwise. The audit needs neither a model nor a running environment.
    """
    from rpms.envs import get_environment
    from rpms.envs.registry import missing_worlds
    from rpms.guard.audit import audit_conversation, read_messages
    from rpms.guard.conversation import ConversationTracker
    from rpms.guard.tools import defaults_of, name_of
    from rpms.vocabulary.errors import RpmsError

    world = get_environment(env, playable=False)
    tracker = ConversationTracker.open(world, rules)
    tools = [] if env in missing_worlds() else world.tools()
    defaults = {name_of(tool): defaults_of(tool) for tool in tools}
    counts = CallCounts()
    with _progress(log) as progress:
        for conversation in _conversations(log, progress):
            try:
                if isinstance(conversation.data, RpmsError):
                    raise conversation.data
                messages = read_messages(conversation.data, conversation.where)
                counts.conversations += 1
                for found in audit_conversation(tracker, messages, unknown, defaults):
                    counts.add(found)
                    if as_json:
                        print_safe(json.dumps(_as_data(conversation, found), ensure_ascii=False))
                    elif everything or found.verdict != "fine":
                        print_wrapped(_as_text(conversation, found))
            except RpmsError as error:
                place = "" if str(error).startswith(conversation.where) else conversation.where
                counts.unreadable += 1
                print_wrapped(f"rpms: {place}{': ' * bool(place)}{error}", file=sys.stderr)
    if not as_json:
        counts.print()
    if counts.unreadable:
        raise typer.Exit(2)
    if counts.verdicts["against"] or (strict and counts.verdicts["uninformed"]):
        raise typer.Exit(1)


def _as_data(conversation: Conversation, found: AuditedCall) -> dict[str, Any]:
    return {
        "conversation": conversation.name, "call": found.number, "tool": found.call.tool,
        "verdict": found.verdict, "rule": found.rule, "reason": found.reason,
        "rejected": found.rejected, "where": conversation.where,
    }  # fmt: skip


def _as_text(conversation: Conversation, found: AuditedCall) -> str:
    verdict = "stopped" if found.stopped else found.verdict
    reason = f" [{found.rule}]: {found.reason}" if found.rule else ""
    rejected = " (the tool rejected it)" if found.rejected else ""
    place = f"{conversation.where}: conversation {conversation.name}, call {found.number}"
    return f"{place}: {found.call}: {verdict}{reason}{rejected}"


class CallCounts:
    """Counts the verdicts, in all and by rule."""

    def __init__(self) -> None:
        self.conversations = self.rejected = self.unreadable = 0
        self.verdicts: Counter[str] = Counter()
        self.rules: dict[str, Counter[str]] = {}

    def add(self, found: AuditedCall) -> None:
        verdict = "stopped" if found.stopped else found.verdict
        self.verdicts[verdict] += 1
        self.rejected += found.rejected
        if found.rule:
            self.rules.setdefault(found.rule, Counter())[verdict] += 1

    def print(self) -> None:
        """Print a table of the rules and a line with the totals."""
        from rpms.commands.terminal_tables import print_rows
        from rpms.evals.analysis.tables import Table, count, label

        heads = ["against", "uninformed", "stopped"]
        rows = [[label(rule), *(count(self.rules[rule][head]) for head in heads)]
                for rule in sorted(self.rules)]  # fmt: skip
        if rows:
            print_rows(open_console(highlight=False), Table("", "", ["rule", *heads], rows))
        calls = quantity(self.verdicts.total(), "call")
        parts = {
            "fine": "fine",
            "against": "against a rule",
            "uninformed": "uninformed",
            "stopped": "stopped by a guard",
        }
        totals = ", ".join(f"{self.verdicts[name]:,} {words}" for name, words in parts.items())
        rejected = f"; the tools rejected {self.rejected:,}" if self.rejected else ""
        conversations = quantity(self.conversations, "conversation")
        unreadable = f"; unreadable: {quantity(self.unreadable, 'line')}" if self.unreadable else ""
        print_wrapped(f"{conversations}, {calls}: {totals}{rejected}{unreadable}")


def _conversations(log: Path, progress: Progress) -> Iterator[Conversation]:
    from rpms.vocabulary.files import is_folder, open_file

    if is_folder(log):
        yield from _recorded(log, progress)
        return
    with open_file(log, "the log") as stream:
        packed = log.suffix == ".xz"
        bar = progress.add_task("", total=None if packed else log.stat().st_size)
        for number, line in enumerate(_unpacked(stream, log) if packed else stream, start=1):
            if line.strip():
                where = f"{log}:{number}"
                data = _parse(line, where)
                name = data.get("id") if isinstance(data, dict) else None
                yield Conversation(name if isinstance(name, str | int) else number, where, data)
            progress.advance(bar, len(line))


def _parse(line: bytes, where: str) -> Any:
    """The data of a line; the error if it is not JSON, so that other lines can be read."""
    from rpms.vocabulary.errors import RpmsError
    from rpms.vocabulary.files import parse_json

    try:
        return parse_json(line.strip(), where)
    except RpmsError as error:
        return error


def _unpacked(stream: BinaryIO, log: Path) -> Iterator[bytes]:
    """The lines of a file that xz has packed."""
    from rpms.vocabulary.errors import RpmsError

    try:
        with lzma.open(stream) as lines:
            yield from lines
    except (lzma.LZMAError, EOFError) as error:
        raise RpmsError(f"cannot read the log {log}: not a whole xz file ({error})") from error


def _recorded(folder: Path, progress: Progress) -> Iterator[Conversation]:
    """The conversations that ``Recorder`` wrote to the step logs of a run folder."""
    from rpms.evals.records.run_folder import read_log, read_run
    from rpms.vocabulary.errors import RpmsError

    run = read_run(folder)
    for episode in progress.track(run.episodes.values(), description=""):
        file = run.log_file(episode)
        log = read_log(file)
        if log is None or "conversation" not in log:
            problem = "it cannot be read" if log is None else "it has no conversation"
            advice = "give a folder that rpms.Recorder wrote"
            raise RpmsError(f"{file}: {problem}; {advice}")
        repeat = f"#{episode.repeat}" if episode.repeat > 1 else ""
        arm = f"{episode.condition}/" if len(run.conditions) > 1 else ""
        name = f"{arm}{episode.task}{repeat}"
        yield Conversation(name, str(file), {"messages": log["conversation"]})


@contextmanager
def _progress(log: Path) -> Iterator[Progress]:
    """A progress bar, shown on a terminal if the log is long or a folder."""
    from rich.progress import Progress

    long = log.is_dir() or (log.is_file() and log.stat().st_size > LONG)
    console = open_console(stderr=True)
    with Progress(
        console=console, transient=True, disable=not (long and console.is_terminal),
        redirect_stdout=sys.stdout.isatty(),
    ) as progress:  # fmt: skip
        yield progress
