"""Mixing: read what is needed, bring it into one container, mix, focus on what came out."""

from __future__ import annotations

import re

from rpms.models.sim.science_listing import Node
from rpms.models.sim.science_matter import fill
from rpms.models.sim.science_mind import CUPS, Ideas, Mind, plain


def mix_recipe(mind: Mind) -> Ideas:
    """A substance by its recipe."""
    product = mind.seen(mind.task.target)
    if product is not None:
        yield "That is it.", f"focus on {product.name}"
        return
    if not mind.scene.recipe:
        yield from mind.look()
        if mind.scene.find("recipe") is not None:
            yield "What does it take?", "read recipe"
        yield from mind.search("recipe", [mind.task.room])
        return
    yield from combine(mind, mind.scene.recipe, [mind.task.room, "kitchen"])


def mix_paint(mind: Mind) -> Ideas:
    """A colour by the rule on paints; a double name is a secondary colour with one more part."""
    yield from mind.look()
    colour = mind.task.target.removesuffix(" paint")
    table = _colours(mind)
    between = next((part for part in colour.split("-") if part in table), "")
    product = mind.seen(mind.task.target)
    if product is not None:
        yield "That is it.", f"focus on {product.name}"
        return
    last = mind.view.turns[-1][0]
    if last.startswith("mix "):
        yield "What has come out?", f"look at {last.removeprefix('mix ')}"
    if colour in table or not between:
        yield from combine(mind, table.get(colour, []), ["art studio"])
        return
    halfway = f"{between} paint"
    if mind.seen(halfway) is None:
        yield from combine(mind, table[between], ["art studio"])
        return
    if halfway not in mind.scene.focused:
        yield "Half of it is done.", f"focus on {halfway}"
    rest = [f"{part} paint" for part in colour.split("-") if part != between]
    yield from combine(mind, [halfway, *rest], ["art studio"])


def combine(mind: Mind, parts: list[str], rooms: list[str]) -> Ideas:
    """All parts into one container, then mix it."""
    yield from mind.look()
    if not parts:
        yield from mind.search("paint", rooms)
        return
    bowl = container(mind, parts)
    if bowl is None:
        yield from mind.search("container", rooms)
        return
    inside = [plain(node.name) for node in bowl.inside]
    for part in parts:
        if plain(part) not in inside:
            yield from _add(mind, part, bowl, rooms)
            return
    yield "All is in it.", f"mix {bowl.name}"


def container(mind: Mind, parts: list[str]) -> Node | None:
    """The one that holds most of the parts, else an empty one that no other is named like."""
    wanted = {plain(part) for part in parts}
    vessels = [n for n in mind.scene.view if n.name.endswith(CUPS) and n.door != "closed"]
    names = [node.name for node in vessels]

    def worth(node: Node) -> tuple[int, int, int]:
        held = {plain(inner.name) for inner in node.inside}
        return (len(held & wanted) - 9 * len(held - wanted), -names.count(node.name), -len(held))

    fit = [node for node in vessels if worth(node)[0] >= 0]
    # A part alone in its own cup is no reason to mix in that cup.
    fit = [node for node in fit if len(node.inside) != 1 or _chosen(mind, node)] or fit
    return max(fit, key=worth) if fit else None


def _chosen(mind: Mind, node: Node) -> bool:
    """Whether it has put something into this one before, or it came from a tap or from mixing."""
    return any(
        action.endswith(f" {node.name}") and action.startswith(("move", "pour", "mix", "0", "1"))
        for action in mind.scene.done
    ) or any(plain(inner.name) in ("water", *map(plain, mind.scene.made)) for inner in node.inside)


def _add(mind: Mind, part: str, bowl: Node, rooms: list[str]) -> Ideas:
    """Bring one part into the container."""
    if plain(part) == "water":
        yield from fill(mind, bowl.name)
        return
    nodes = [n for n in mind.scene.view if plain(n.name) == plain(part)]
    nodes = [n for n in nodes if not any(n is inner for inner in bowl.inside)]
    if nodes:
        around = mind.holder(nodes[0])
        shut = around is not None and around.name.endswith("jar") and around.door != "open"
        if around is not None and (shut or around.door == "closed"):
            yield "It is closed.", f"open {around.name}"
        if around is not None and around.name.endswith(CUPS):
            yield f"{part} goes in.", f"pour {around.name} containing {part} into {bowl.name}"
        yield f"{part} goes in.", f"move {nodes[0].name} to {bowl.name}"
        yield f"{part} goes in.", f"pour {nodes[0].name} into {bowl.name}"
    if room := mind.remembered(part) if not nodes else "":
        if not mind.carries(bowl):
            yield "The container comes along.", f"pick up {bowl.name}"
        yield from mind.go(room)
    yield from mind.open_all()
    if not mind.carries(bowl):
        yield "The container comes along.", f"pick up {bowl.name}"
    yield from mind.search(part, rooms)


def _colours(mind: Mind) -> dict[str, list[str]]:
    """``red+blue violet`` in the rule's text: which two make which."""
    found: dict[str, list[str]] = {}
    for one, two, made in re.findall(r"(\w+)\+(\w+) (\w+)", mind.view.rules.get("F3-MIX-001", "")):
        found[made] = [f"{one} paint", f"{two} paint"]
    return found
