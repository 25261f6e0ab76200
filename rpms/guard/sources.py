"""Compares a written policy with a manual: finds the sentences that no rule cites.

A rule cites a sentence if its ``source`` contains it, whole or in part. Words are compared without
case, punctuation and Markdown. A heading is no sentence; a rule may name one as its source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rpms.rules import Manual

FEWEST = 3
"""The fewest words of a quotation that is not a whole sentence."""
_FENCE = re.compile(r"\s*(```|~~~)")
_HEADING = re.compile(r"\s*#{1,6}\s+(.*)")
_UNDERLINE = re.compile(r"\s*(=+|-+)\s*")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTE = re.compile(r"\s*>\s?")
_TABLE_RULE = re.compile(r"\s*\|?[\s:|-]*-[\s:|-]*\|?\s*")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKUP = re.compile(r"\*+|`+|~~|(?<!\w)_+|_+(?!\w)|<[^<>]*>")
# A full stop ends a sentence where the next word begins one, but not in an abbreviation.
_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])"
)
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”")

UNDECIDED = "not yet decided"
"""The reason beside a sentence of a new manual, until its author writes a rule or another one."""


class Sentence(NamedTuple):
    """A sentence of a policy, without Markdown, and its line."""

    line: int
    text: str


class Citations(NamedTuple):
    """The comparison of a policy with a manual.

    Attributes:
        sentences: all sentences of the policy.
        cited: those that rules cite, each with the ids of the rules.
        uncited: those that no rule cites.
        excused: those that the manual lists as not checkable, each with the reason.
        strange: sources of rules that are not in the policy, each with the rule's id.
    """

    sentences: list[Sentence]
    cited: list[tuple[Sentence, list[str]]]
    uncited: list[Sentence]
    excused: list[tuple[Sentence, str]]
    strange: list[tuple[str, str]]


def undecided(manual: Manual) -> Iterator[tuple[str, str, str]]:
    """Sentences of a new manual that are neither a rule nor known to be not checkable."""
    for words, reason in manual.environment.not_checkable.items():
        if reason == UNDECIDED:
            yield "environment", "not_checkable", f"{UNDECIDED}: {words}"


def left_over(citations: Citations) -> Iterator[tuple[str, str, str]]:
    """Sentences without a rule or a reason, and sources that are not in the policy (any more)."""
    for sentence in citations.uncited:
        yield "environment", "policy", f"no rule cites line {sentence.line}: {sentence.text}"
    for rule, source in citations.strange:
        yield "environment", rule, f"its source is not in the policy: {source}"


def compare_policy(manual: Manual, policy: str) -> Citations:
    """Compare the sentences of a policy with the sources of the rules."""
    text, sentences = f" {_plain(policy)} ", split_sentences(policy)
    headings = {_plain(title) for title in _headings(policy)}
    sources = dict(_sources(manual))
    quotations = {rule: [q for q in _quotations(source) if q not in headings]
                  for rule, source in sources.items()}  # fmt: skip
    reasons = {_plain(words): reason for words, reason in manual.environment.not_checkable.items()}
    cited: list[tuple[Sentence, list[str]]] = []
    uncited: list[Sentence] = []
    excused: list[tuple[Sentence, str]] = []
    for sentence in sentences:
        if rules := [rule for rule, quoted in quotations.items() if _is_cited(sentence, quoted)]:
            cited.append((sentence, rules))
            continue
        reason = next((why for words, why in reasons.items() if _is_cited(sentence, [words])), "")
        if reason:
            excused.append((sentence, reason))
        else:
            uncited.append(sentence)
    strange = [
        (rule, source)
        for rule, source in sources.items()
        if not any(f" {quotation} " in text for quotation in _quotations(source))
        and not any(_is_cited(sentence, _quotations(source)) for sentence in sentences)
    ]
    strange += [
        ("not_checkable", words)
        for words in manual.environment.not_checkable
        if not any(_is_cited(sentence, [_plain(words)]) for sentence in sentences)
    ]
    return Citations(sentences, cited, uncited, excused, strange)


def _sources(manual: Manual) -> Iterator[tuple[str, str]]:
    """The sources of a world's rules, without the tier that all worlds share."""
    environment, domain = manual.environment, manual.domain
    rules = [*environment.actions, *environment.policy, *environment.forbidden, *environment.rules]
    for rule in (*rules, *domain.rules, *(r for tier in manual.extra.values() for r in tier)):
        if rule.source:
            yield rule.id, rule.source


def _quotations(source: str) -> list[str]:
    """The words of a source, and its parts in quotation marks."""
    quoted = (first or second for first, second in _QUOTED.findall(source))
    return [*filter(None, map(_plain, (source, *quoted)))]


def _is_cited(sentence: Sentence, quotations: Iterable[str]) -> bool:
    words = _plain(sentence.text)
    return any(words == quotation or _has(quotation, words) or _has(words, quotation)
               for quotation in quotations)  # fmt: skip


def _has(text: str, part: str) -> bool:
    return part.count(" ") >= FEWEST - 1 and f" {part} " in f" {text} "


def _plain(text: str) -> str:
    """The words alone, without markup, case and punctuation."""
    return " ".join(re.findall(r"\w+", _without_markup(text).casefold()))


def _without_markup(text: str) -> str:
    return _MARKUP.sub("", _LINK.sub(r"\1", text))


def _headings(policy: str) -> Iterator[str]:
    lines = policy.splitlines()
    for line, below in zip(lines, [*lines, ""][1:], strict=True):
        if heading := _HEADING.fullmatch(line):
            yield heading[1]
        elif line.strip() and _UNDERLINE.fullmatch(below):
            yield line


def split_sentences(policy: str) -> list[Sentence]:
    """The sentences of a text in Markdown: of its paragraphs, list items and rows of tables.

    Items that go on with the sentence before them (``You can:``, ``- cancel orders``) belong to it.
    A label such as ``Payment:`` is no sentence.
    """
    blocks: list[Sentence] = []
    listing = False
    for line, text, is_item in _blocks(policy):
        goes_on = is_item and text[0].islower() and bool(blocks)
        if goes_on and (listing or blocks[-1].text.endswith(":")):
            joint = ", " if listing else " "
            blocks[-1] = blocks[-1]._replace(text=f"{blocks[-1].text}{joint}{text}")
            listing = True
        else:
            blocks.append(Sentence(line, text))
            listing = False
    lines = policy.splitlines()
    sentences: list[Sentence] = []
    for block in blocks:
        begin = block.line
        if block.text.endswith(":") and len(block.text.split()) <= FEWEST:
            continue
        for sentence in map(str.strip, _END.split(block.text)):
            if re.search(r"\w", sentence):
                first, begin = _lines_of(sentence, lines, begin)
                sentences.append(Sentence(first, sentence))
    return sentences


def _lines_of(sentence: str, lines: Sequence[str], begin: int) -> tuple[int, int]:
    """The first and the last line of a sentence, from a line on; that line if it is not found."""
    words = _plain(sentence).split()
    placed = [(word, n) for n, line in enumerate(lines[begin - 1 :], begin)
              for word in _plain(line).split()]  # fmt: skip
    for length in (len(words), FEWEST):  # items that go on with a sentence stand apart from it
        sought = words[:length]
        for start in range(len(placed) - len(sought) + 1):
            found = placed[start : start + len(sought)]
            if [word for word, _ in found] == sought:
                return found[0][1], found[-1][1]
    return begin, begin


def _blocks(policy: str) -> Iterator[tuple[int, str, bool]]:
    """Each paragraph, item or row with its first line, and whether it is an item."""
    titles, begin, is_item = {title.strip() for title in _headings(policy)}, 0, False
    words: list[str] = []
    lines = re.sub(r"<!--.*?-->", _same_lines, policy, flags=re.DOTALL).splitlines()
    for number, line in enumerate([*lines, ""], start=1):
        item, row = _ITEM.match(line), line.lstrip().startswith("|")
        bare = _QUOTE.sub("", line[item.end() :] if item else line, count=1).strip()
        marks = (_HEADING, _UNDERLINE, _TABLE_RULE)
        ends = not bare or bare in titles or bool(_FENCE.match(line))
        ends = ends or any(mark.fullmatch(line) for mark in marks)
        if ends or item or row:
            if text := " ".join(_without_markup(" ".join(words)).split()):
                yield begin, text, is_item
            words = []
        if not ends:
            if not words:
                begin, is_item = number, bool(item)
            words.append(bare.strip("|").replace("|", " ") if row else bare)


def _same_lines(comment: re.Match[str]) -> str:
    return "\n" * comment[0].count("\n")
