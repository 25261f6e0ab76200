from __future__ import annotations

from pathlib import Path

import pytest

from rpms.envs import get_environment
from rpms.evals.protocol_card import apply_protocol, load_protocols
from rpms.nodes.context import RunContext
from rpms.nodes.shown import check_shown
from rpms.vocabulary.errors import RpmsError

DOCS = Path(__file__).resolve().parents[2] / "docs" / "evaluation.md"


@pytest.mark.parametrize("name", load_protocols())
def test_each_protocol_is_cited_and_can_be_played(name: str) -> None:
    one = load_protocols()[name]
    assert one.about and one.differs and any(sign in one.source for sign in ("arXiv", "paper"))
    env = one.env or "alfworld"
    protocol, context = apply_protocol(name, RunContext(model="openai:m"), env)
    assert protocol is one and context.model == "openai:m"
    assert {setting: context.plain[setting] for setting in one.set} == one.set
    assert not one.split or one.split in get_environment(env).splits()
    check_shown(env, context)
    assert f"`{name}`" in DOCS.read_text()


def test_the_usual_ones_differ_where_their_sources_do() -> None:
    base = RunContext()
    assert apply_protocol("paper", base)[1] == base
    (react, once), (reflexion, again) = (apply_protocol(n, base) for n in ("react", "reflexion"))
    assert (once, react.split, react.trials) == (again, reflexion.split, 1)
    assert reflexion.trials == 10 and once.examples == 2 and react.tasks == 134
    _, listed = apply_protocol("alfworld-list", base)
    assert listed.action_list and listed.examples == 0


def test_what_cannot_be_meant_is_refused_in_one_line() -> None:
    with pytest.raises(RpmsError, match="unknown protocol 'x'; known: paper, react"):
        apply_protocol("x", RunContext())
    with pytest.raises(RpmsError, match="is for alfworld, not for scienceworld"):
        apply_protocol("react", RunContext(), "scienceworld")
    with pytest.raises(RpmsError, match="react is played with max_steps=49, not 30"):
        apply_protocol("react", RunContext(max_steps=30))
    assert apply_protocol("react", RunContext(max_steps=49))[1].max_steps == 49
