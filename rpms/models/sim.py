"""``sim``: a small planner that replaces a language model in tests and in quick looks.

It is a LangChain chat model that sees only the text of the prompt and knows no environment and no
rule. With it the tests run the whole pipeline without a key or a download. Its results are
labelled as planner results.

``Prompt`` parses the prompt: it knows the layout of our prompts (a list of actions, a worked
example, bracketed blocks) and plain English, but no words of an environment. ``Planner`` imitates
the example and trusts what the prompt prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple
from zlib import crc32

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from rpms.models.controls import NEW_TASK
from rpms.models.replies import answer

ATTENTION = 6
"""The number of its latest turns that the planner considers."""
CARELESS = 3
"""One in this many turns is careless."""

Idea = tuple[str, str]
_TASK = re.compile(r"Your task is to:?\s*(.+)", re.S)
_BLANK = re.compile(r"\{[^{}\n]+\}|<\w+>")
_EDGE = re.compile(  # also separates the parts of JSON observations
    r'[,.:;(){}\[\]"\n\t]|\b(?:and|is|are|you see|containing|called|which|that)\b', re.I
)
_ARTICLE = re.compile(r"^(?:\W*\b(?:a|an|the|on|in|to|you)\b)+ *", re.I)
_LEFT_OUT = re.compile(r"\n\n\[\.\.\. (\d+) earlier turns? left out \.\.\.\]\n*")
_NEEDS = re.compile(r"^(?:\W*[A-Z][\w-]*\W+)?([a-z][^|\n]*?) *\| *needs ([^|\n]+)", re.M)
_LACKED = re.compile(r"\bit needs (.+?)(?=, and |; it needs |\. |\.?$)", re.M)
# Patterns of printed needs, and their form in the planner.
_PLAINLY = (
    (r"^you to be somewhere else than (.+)$", r"not be at \1 already"),
    (r"^you to be at (.+)$", r"be at \1"),
    (r"^you to hold (.+)$", r"hold \1"),
    (r"^your hands? to be empty$", "hands empty"),
    (r"^(.+) (?:to be open \(if it has a door\)|not to be closed)$", r"\1 not closed"),
    (r"^(.+) to be (?:where you are|in view)$", r"\1 in view"),
    (r"^(.+) to be (.+)$", r"\1 is \2"),
)
_SMALL = re.compile(
    "a|an|n|the|some|any|it|them|this|that|one|two|three|first|then|next|and|or|but|if|to|in|on|"
    "into|of|at|by|for|from|with|under|near|around|above|below|is|are|be|will|which|when|than|"
    "your|you|task|find|get|bring|place|located|using|not|no|also", re.I,
)  # fmt: skip
# "do_it: thing 1, at place 1 (you are at place 2)"; the paper has "do_it - thing 1".
_SUB_GOAL = re.compile(r"^(\w+?)_\w+(?:: | - )(.+?)(?:, at ([^(]+?))?(?: \(you are .*\))?$")
_VETO = re.compile(r"(?:'.+'|The reply) was not carried out[^:]*: (.+?) Choose another")
Turn = tuple[str, str]  # action, observation


class Template(NamedTuple):
    """A printed action such as ``do {this} with {that}``, and the pattern that parses it."""

    text: str
    verb: str
    blanks: list[str]
    pattern: re.Pattern[str]

    def fill(self, names: Sequence[str]) -> str:
        """Return the action with these names in its blanks."""
        fillings = iter(names)
        return _BLANK.sub(lambda blank: next(fillings, blank[0]), self.text)


class Prompt:
    """The parts of a prompt that the planner uses."""

    def __init__(self, messages: Sequence[tuple[str, str]]) -> None:
        """Parse (role, text) messages; those before ``NEW_TASK`` are the example."""
        system = "\n".join(text for role, text in messages if role == "system")
        talk = [(role, text) for role, text in messages if role != "system"] or [("human", "")]
        start = max((i for i, (_, text) in enumerate(talk) if NEW_TASK in text), default=0)
        before, _, after = talk[start][1].rpartition(NEW_TASK)
        after, count, rest = [*_LEFT_OUT.split(after), "0", ""][:3]
        later = [("ai", ""), ("human", rest)] if rest else talk[start + 1 :]
        self.left_out, newest = int(count), later[-1][1] if later else ""
        example = [*talk[:start], ("human", before)] if start else [("human", "")]
        self.example_opening, self.example_task, self.example = _story(example)
        self.opening, self.task, self.turns = _story([("human", after), *later])
        actions = re.findall(r"^[ \t]*(?:\d+[.)]|[-*]) (.+)$", system, re.M)
        self.templates = [template(text) for text in actions]
        self.refusal = _last(r'the answer is "(.+?)\.?"', system) or "?"
        self.text = text = "\n".join(_parts(after, True) + _parts(newest, True))
        state = _last(r"^\[.*\bState\]\n((?:  .*\n?)+)", text)
        line = r"(?:^|  )([A-Z][a-z ]+)(?: \(.*\))?: (.*?)(?=  |$)"
        self.state = dict(re.findall(line, state, re.M))
        self.objective = _last(r"(?:Current sub-goal: |Current Objective\] )(.+)", text)
        self.needs = [(template(act), plainly(needs)) for act, needs in _NEEDS.findall(text)]
        last = _last(r"' was rejected[^:]*: (.+)$", text)
        if vetoed := _VETO.match(newest):
            last = vetoed[1]
        self.diagnosis = plainly(";".join(_LACKED.findall(last))) or [last]
        # A past success: its label, its actions, and its warning.
        past = r"^[ \t]*(?:OK: ([^:\n]+)|From here[^:\n]*): (.+)$(\n\s+WARNING)?"
        self.advice = re.findall(past, text, re.M)
        # A lesson that states what an action needs becomes a need. A lesson with a warning is
        # ignored. The actions of other lessons are avoided.
        lessons = re.findall(
            r"^[ \t]*AVOID[^:\n]*: (.+)(?:\n[ \t]+Rule: (.*))?(\n[ \t]+WARNING)?", text, re.M
        )
        learned = r"^[ \t]*Learned: (.+?) (needs .+?)(?:; afterwards.*| \(worked in.*)?$"
        lessons += re.findall(rf"{learned}(\n[ \t]+WARNING)?", text, re.M)
        wrong = r"^[ \t]*(?:Danger: in|In) a (?:similar )?task.*?'(.+)' was (?:rejected|wrong)"
        self.avoid = [action for action, rule, doubt in lessons if not (doubt or "needs" in rule)]
        self.avoid += re.findall(wrong, text, re.M)
        self.needs += [
            (template(action), plainly(rule.removeprefix("needs ")))
            for action, rule, doubt in lessons
            if rule.startswith("needs ") and not doubt
        ]
        self.offered = re.findall(r"^[ \t]+\d+\. (.+?) \(.*\)$", text, re.M)

    def read(self, action: str) -> tuple[Template | None, list[str]]:
        """Return the template of an action with the longest verb, and its arguments."""
        fits = [(t, match) for t in self.templates if (match := t.pattern.match(action))]
        template, match = max(fits, key=lambda fit: len(fit[0].verb), default=(None, None))
        return template, [name.strip() for name in match.groups()] if match else []

    def refused(self, turn: Turn) -> bool:
        """Return True if the environment rejected the action, or the guard vetoed it."""
        return turn[1].startswith(self.refusal) or _VETO.match(turn[1]) is not None

    def label(self, *stems: str) -> list[str]:
        """Return the names in the state line whose label begins with one of these stems."""
        values = (v for k, v in self.state.items() if k.lower().startswith(stems))
        return [name for name in names(next(values, "")) if name != "nothing"]


def plainly(needs: str) -> list[str]:
    """Simplify needs: ``you to be at X; Y to be closed`` -> ``be at X``, ``Y is closed``."""
    conditions = []
    for words in filter(None, map(str.strip, needs.split(";"))):
        forms = (re.sub(pattern, plain, words) for pattern, plain in _PLAINLY)
        conditions.append(next((form for form in forms if form != words), words))
    return conditions


@lru_cache(maxsize=256)
def template(text: str) -> Template:
    """Parse a template; the groups of its pattern are the names in the blanks."""
    parts = _BLANK.split(text.strip())
    pattern = re.compile("(.+)".join(map(re.escape, parts)) + "$", re.I)
    return Template(text.strip(), parts[0].strip(), _BLANK.findall(text), pattern)


def names(text: str) -> list[str]:
    """Return possible names in a text: ``a whatsit 2, the big whatsit (containing nothing)``."""
    parts = (_ARTICLE.sub("", part.strip()) for part in _EDGE.split(text))
    return list(dict.fromkeys(name for name in parts if 0 < len(name.split()) < 6))


def phrases(sentence: str, templates: Sequence[Template]) -> list[str]:
    """Return the names in a task sentence, in order: the words between small words and verbs."""
    verbs = {t.verb.split()[0] for t in templates if t.verb}
    words = [
        "|" if not word.isalpha() or _SMALL.fullmatch(word) or word.lower() in verbs else word
        for word in re.findall(r"[A-Za-z]\w*|\S", sentence)
    ]
    return list(dict.fromkeys(filter(None, map(str.strip, " ".join(words).split("|")))))


def alike(name: str, target: str) -> bool:
    """Return True if two names may mean the same thing: ``whatsit 2``, ``big whatsit``."""
    first, other = kind(name).split(), kind(target).split()
    same = bool(first and other) and first[-1] == other[-1]
    return same and (set(first) <= set(other) or set(other) <= set(first))


def kind(name: str) -> str:
    """``whatsit 2`` -> ``whatsit``."""
    return re.sub(r"\s+\d+$", "", name.strip().lower())


def _story(talk: Sequence[tuple[str, str]]) -> tuple[str, str, list[Turn]]:
    """Return the opening, the task sentence and the turns of a conversation."""
    read = [(role, "\n".join(_parts(text, block=False))) for role, text in talk]
    pairs = pairwise(read[1:])
    turns = [(a.rpartition("Action:")[2].strip(), b) for (role, a), (_, b) in pairs if role == "ai"]
    opening, _, _ = read[0][1].partition("Your task is to")
    return opening, (_TASK.findall(read[0][1]) or [""])[0].strip(), turns


def _parts(text: str, block: bool) -> list[str]:
    """Return the paragraphs of a message that are blocks, or those that are not."""
    return [p.strip("\n") for p in text.split("\n\n") if p.lstrip().startswith("[") == block]


def _last(pattern: str, text: str) -> str:
    """Return the last match, because a growing prompt may contain older ones."""
    mentions = re.findall(pattern, text, re.M)
    return str(mentions[-1]).strip() if mentions else ""


class Planner:
    """Makes one decision; a new planner reads every prompt, so it keeps no state.

    Ideas come from the current sub-goal, from past successes, from the example, and finally from a
    search elsewhere. Each is checked against the prompt: an action with an unmet need is replaced
    by one that meets the need, and an action that a lesson warns of, or that was just rejected, is
    dropped. In careless turns the planner checks nothing and starts from any source.
    """

    def __init__(self, prompt: Prompt, whim: int = 0) -> None:
        """Find out from the text where things are."""
        self.prompt, self.whim, self.recent = prompt, whim, prompt.turns[-ATTENTION:]
        self.last_turn = prompt.turns[-1] if prompt.turns else ("", prompt.opening)
        self.targets = phrases(prompt.task, prompt.templates)
        example_targets = phrases(prompt.example_task, prompt.templates)
        self.roles = list(zip(example_targets, self.targets, strict=False))
        self.shown = [prompt.read(action) for action, _ in prompt.example]
        # The first action of the example goes to a place, so it is the action for travel.
        self.travel = self.shown[0][0] if self.shown and self.shown[0][1] else None
        self.location, self.seen, self.last_seen = "", list[str](), dict[str, str]()
        for action, seen in [("", prompt.opening), *prompt.turns]:
            template, args = prompt.read(action)
            if template and template == self.travel and not prompt.refused((action, seen)):
                self.location, self.seen = args[0], []
                self.last_seen = {t: p for t, p in self.last_seen.items() if p != self.location}
            self.seen += names(seen)
            self.last_seen |= dict.fromkeys(names(seen) if self.location else [], self.location)
        self.location = next(iter(prompt.state.values()), self.location)
        self.held = prompt.label("hold", "carry")
        for thing, _, place in (name.partition(" at ") for name in prompt.label("seen")):
            self.last_seen |= {thing: place} if place else {}
        self.places = self._places()
        self.things = [*self.held, *self.seen, *self.last_seen, *self.places]

    def decide(self) -> Idea:
        """Return a thought and an action."""
        puzzled = self.prompt.refused(self.last_turn) and not any(self.prompt.diagnosis)
        if self.last_turn[0] and self._coin(CARELESS if puzzled else 3 * CARELESS) == 0:
            return "Once more.", self.last_turn[0]
        for thought, action in self._ideas():
            for reason, checked in self._checked(action, depth=3):
                return reason or thought, checked
        bare = [template.text for template in self.prompt.templates if not template.blanks]
        return "I do not know what to do.", bare[self._coin(len(bare))] if bare else "look"

    def _ideas(self) -> Iterator[Idea]:
        if menu := re.findall(r"^[ \t]*(\d+):[ \t]*(.+)$", self.last_turn[1], re.M):
            words = set(f"{self.prompt.task} {self.prompt.objective}".lower().split())
            best = max(menu, key=lambda line: len(words & set(line[1].lower().split())))
            yield "That is the one I meant.", best[0]
        yield from (("This is offered to me.", action) for action in self.prompt.offered)
        moved = self.travel and self.prompt.read(self.last_turn[0])[0] == self.travel
        if moved and self.shown[1:] and not self.shown[1][1] and len(self.last_turn[1].split()) < 8:
            yield "Let me see what is here.", self.prompt.example[1][0]
        if self.prompt.refused(self.last_turn):
            for need in self.prompt.diagnosis:
                yield from self._meet(need)
        sources = [self._objective, self._remembered, self._imitate]
        first = self._coin(len(sources)) if self._careless() else 0
        for source in sources[first:] + sources[:first]:
            yield from source()
        yield from self._search(self.targets[0] if self.targets else "")

    def _places(self) -> list[str]:
        """Return names in the text after the same words as the example's destinations."""
        text = "\n".join([self.prompt.example_opening, *(s for _, s in self.prompt.example)])
        goals = [args[0] for template, args in self.shown if args and template == self.travel]
        before = [re.search(rf"((?:[A-Za-z]+ )+){re.escape(goal)}\b", text) for goal in goals]
        leads = [lead_in[1].lower() for lead_in in before if lead_in]
        while leads and (lead := leads[0]):
            if not all(other.endswith(lead) for other in leads):
                leads[0] = lead.partition(" ")[2]  # shortens to the common suffix
                continue
            # An article alone is not specific: then only the opening lists places.
            text = "\n".join([self.prompt.opening, *(s for _, s in self.prompt.turns if lead[2:])])
            listed = re.findall(rf"\b{lead}([\w ]+?)(?= ?[,.(\n])", text, re.I)
            return [p for p in dict.fromkeys(listed) if p[-1].isdigit() == goals[0][-1].isdigit()]
        return []

    def find(self, target: str, among: Sequence[str]) -> str:
        """Return the thing with that name, else one of that kind."""
        exact = [name for name in among if name.lower() == target.lower()]
        return next(iter(exact or [name for name in among if alike(name, target)]), "")

    def _objective(self) -> Iterator[Idea]:
        """Yield the current sub-goal as an action, or a search for its target."""
        place = (_SUB_GOAL.match(self.prompt.objective) or [""] * 4)[3] or ""
        words = _SUB_GOAL.sub(r"\1 \2", self.prompt.objective).replace(", in/on", " in/on")
        goal, _, target = words.partition(" ")
        for template in sorted(self.prompt.templates, key=lambda t: -len(t.verb)):
            # The target may be worded like the action: "<thing> from <place>".
            for verb in (goal, template.verb) if template.blanks[1:] else (goal,):
                if match := template.pattern.match(f"{verb} {target}"):
                    parts = [name.split(" at ")[0] for name in match.groups()]
                    if all(filled := [self.find(name, self.things) for name in parts]):
                        yield f"My sub-goal: {goal} {target}.", template.fill(filled)
                    target = parts[0] if parts else target
            if template.verb == goal and template.blanks[1:]:
                like = [args[1] for used, args in self.shown if used == template]
                places = [place, *(self.find(kind, self.places) for kind in like)]
                yield (
                    f"My sub-goal: {goal} {target}.",
                    template.fill([target, *filter(None, places), self.location]),
                )
        if goal:
            yield from self._search(target)

    def _remembered(self) -> Iterator[Idea]:
        """Yield the next step of past successes, with our object; those with a warning last."""
        order = [(bool(warned), label not in self.prompt.objective, steps.split(" -> "))
                 for label, steps, warned in self.prompt.advice]  # fmt: skip
        target = self.find(self.targets[0], [*self.held, *self.seen]) if self.targets else ""
        for _, _, steps in sorted(order):
            grounded_steps = []
            for template, args in map(self.prompt.read, steps):
                spare = target if template != self.travel else ""
                filled = [self.find(name, self.things) or spare for name in args]
                grounded_steps.append(template.fill(filled) if template and all(filled) else "")
            done = self.last_turn[0]
            position = grounded_steps.index(done) + 1 if done and done in grounded_steps else 0
            following = grounded_steps[position:]
            if following and following[0]:
                yield "It worked before like this.", following[0]

    def _imitate(self) -> Iterator[Idea]:
        """Yield the example's next action at the most similar points, with our things."""
        turns, progress = self.prompt.example, self._progress(self.recent, self.targets)
        example_targets = [target for target, _ in self.roles]
        stages = [self._progress(turns[:number], example_targets) for number in range(len(turns))]
        ratios = [SequenceMatcher(None, progress, stage).ratio() for stage in stages]
        for position in sorted(range(len(turns)), key=lambda number: -ratios[number])[:3]:
            destinations = [
                args[0] for used, args in self.shown[:position] if args and used == self.travel
            ]
            template, filled = self.shown[position][0], list[str]()
            for name in self.shown[position][1]:
                plain, _, rest = name.partition(" in ")
                role = next((my for their, my in self.roles if alike(plain, their)), plain)
                match = self.location if name in destinations[-1:] else self.find(role, self.things)
                if not match and self.seen and self._coin(4) == 0:  # a guess
                    match = self.seen[self._chance(name) % len(self.seen)]
                if not match:
                    yield from self._search(role)
                filled.append(f"{match} in {rest}" if rest and match in self.held else match)
            if template and all(filled):
                yield "As in the example.", template.fill(filled)

    def _progress(self, turns: Sequence[Turn], targets: Sequence[str]) -> list[str]:
        """Describe the progress of turns: the actions on the targets, and the last words."""
        read = [self.prompt.read(turn[0]) for turn in turns if not self.prompt.refused(turn)]
        done = [t.verb for t, args in read if t and t != self.travel
                for w in targets if args and alike(args[0], w)]  # fmt: skip
        action, seen = turns[-1] if turns else ("", "")
        in_sight = any(alike(name, w) for name in names(seen) for w in targets[:1])
        words = [w for w in re.findall(r"[a-z/]+", seen.lower())[:8] if w not in action.split()]
        return [*sorted(done * 3), *["there"] * 3 * in_sight, *action.split()[:1], *words]

    def _search(self, thing: str) -> Iterator[Idea]:
        """Go where the thing was seen, open closed things, then visit places, likely first."""
        if not self.travel:
            return
        where = self.last_seen.get(self.find(thing, list(self.last_seen)), self.location)
        if where != self.location:
            yield f"I saw {thing} there.", self.travel.fill([where])
        for shut in re.findall(r"[Tt]he ([\w ]+?) is closed", self.last_turn[1]):
            whole = next((name for name in self.seen if shut.startswith(f"{name} ")), shut)
            yield from self._meet(f"{whole} not closed")
        hints = re.findall(r".*(?:usually|likely|found).*", self.prompt.text.lower())
        likely = " ".join(line for line in hints if thing and kind(thing) in line)
        visited = [name for action, _ in self.recent for name in self.prompt.read(action)[1]]
        visited += [self.location, *self.prompt.label("search", "look")]
        unvisited = [(likely.find(kind(place)) % 10**6, self._chance(place), place)
                for place in self.places if place not in visited]  # fmt: skip
        for _, _, place in sorted(unvisited):
            yield f"I look for {thing or 'it'} there.", self.travel.fill([place])

    def _checked(self, action: str, depth: int) -> Iterator[Idea]:
        """Yield the action, or actions that meet its needs; nothing if it should be avoided."""
        repeats = [turn[0] for turn in self.recent if self.prompt.refused(turn)]
        repeats += self.prompt.state.get("Rejected here", "").split(", ")
        repeats += [done for done, _ in self.recent[-3:] if self.prompt.read(done)[1]]
        if self._careless():
            yield "", action
        if not depth or action in repeats or action in self.prompt.avoid:
            return
        for shape, needs in self.prompt.needs:
            match = shape.pattern.match(action)
            for need in map(str.strip, needs if match else []):
                for blank, name in zip(shape.blanks, match.groups() if match else [], strict=True):
                    word = re.escape(blank.strip("<>{}"))
                    need = re.sub(rf"<{word}>|\b{word}\b", name.replace("\\", ""), need)
                if self._unmet(need):
                    for reason, better in self._meet(need):
                        yield from ((reason, a) for _, a in self._checked(better, depth - 1))
                    return
        yield "", action

    def _unmet(self, need: str) -> bool:
        """Return True if the printed state contradicts a need."""
        if match := re.match(r"(not )?be at (.+?)(?: already)?$", need):
            near = match[2] in [self.location, *self.prompt.label("within")]
            return near == bool(match[1]) and match[2] in self.things and bool(self.prompt.state)
        if match := re.match(r"hold (.+)$|.*\bempty$", need):
            right = bool(self.find(match[1], self.held)) if match[1] else not self.held
            return not right and bool(self.prompt.state)
        if match := re.match(r"(.+?) (?:is )?in view", need):
            return (
                match[1] not in self.held
                and self.last_seen.get(match[1], self.location) != self.location
            )
        match = re.match(r"(.+?) (?:is )?(?:not closed|open)\b", need)
        return bool(match) and match[1] in self.prompt.label("closed") if match else False

    def _meet(self, need: str) -> Iterator[Idea]:
        """Yield actions that meet a need: going there, or the action that the need names."""
        match = re.match(r"(?:be at )?(.+?)(?: is\b| not\b| in view|$)", need)
        thing = match[1] if match else ""
        where = self.last_seen.get(thing, thing if need.startswith("be at") else "")
        if self.travel and where in self.things and where != self.location:
            yield f"It needs: {need}.", self.travel.fill([where])
        for template in self.prompt.templates:
            words = need.replace("not closed", "open").split()
            if len(template.blanks) == 1 and template.verb in words:
                yield f"It needs: {need}.", template.fill([thing])

    def _careless(self) -> bool:
        return bool(self.recent) and self._coin(CARELESS) == 0

    def _coin(self, sides: int) -> int:
        """Return a pseudo-random choice; the same prompt always gives the same one."""
        return self._chance("|".join(action for action, _ in self.recent)) % max(1, sides)

    def _chance(self, text: str) -> int:
        turns = self.prompt.left_out + len(self.prompt.turns)
        return crc32(f"{self.whim}|{self.prompt.task}|{turns}|{text}".encode())


class SimPlanner(BaseChatModel):
    """The planner as a chat model; the same messages and ``whim`` always get the same reply."""

    whim: int = 0

    @property
    def _llm_type(self) -> str:
        return "rpms-sim"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": "sim", "whim": self.whim}

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        prompt = Prompt([(message.type, str(message.text)) for message in messages])
        thought, action = Planner(prompt, self.whim).decide()
        return answer(f"Thought: {thought}\nAction: {action}", messages, "sim")
