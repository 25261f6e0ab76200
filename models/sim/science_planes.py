"""Two inclined planes: let the same block slide down each for the same time and compare."""

from __future__ import annotations

import re

from rpms.models.sim.science_listing import Node, without_articles
from rpms.models.sim.science_mind import Ideas, Mind

_PLANE = "inclined plane"
# Looks at each plane; the difference shows long before the block is down.
_LOOKS = 6


def compare_planes(mind: Mind) -> Ideas:
    """Try both, then focus on the one that the task asks for."""
    planes = [node for node in mind.scene.view if node.name.startswith(_PLANE)]
    if len(planes) < 2:
        yield from mind.search(_PLANE, ["workshop"])
        return
    if mind.scene.focused:
        return
    block = next((n for n in mind.scene.view if n.name.endswith(("block", "brick"))), None)
    looks = 1 if mind.hasty else _LOOKS
    for plane in planes[:2]:
        if len(_slides(mind, plane.name)) < looks:
            yield from _try(mind, plane, block)
            return
    slow, fast = sorted(planes[:2], key=lambda plane: _speed(_slides(mind, plane.name)))
    answer = slow if mind.task.quality in ("most", "shallowest") else fast
    yield "The slower one is shallower or rougher.", f"focus on {answer.name}"


def _try(mind: Mind, plane: Node, block: Node | None) -> Ideas:
    if block is None:
        yield from mind.search("block", ["workshop"])
        return
    if plane.name not in mind.path(block):
        yield "Let it slide.", f"move {block.name} to {plane.name}"
    watch = mind.scene.find("stopwatch")
    if watch is not None and watch.note != "activated":
        yield "Take the time.", "activate stopwatch"
    yield "How far is it?", f"look at {plane.name}"


def _speed(slides: list[int]) -> float:
    """Percent a look; a block that has arrived tells no more."""
    moving = [part for part in slides if part < 100]
    if len(moving) < 2:
        return float(slides[-1])
    return (moving[-1] - moving[0]) / (len(moving) - 1)


def _slides(mind: Mind, plane: str) -> list[int]:
    """How far down the block was at each look at a plane, in percent."""
    found = []
    for action, answer in mind.view.turns:
        if without_articles(action) != without_articles(f"look at {plane}"):
            continue
        part = re.search(r"approximately (\d+)% down", answer)
        if part or "at the top of the plane" in answer or "bottom of the plane" in answer:
            found.append(int(part[1]) if part else 100 * ("bottom" in answer))
    return found
