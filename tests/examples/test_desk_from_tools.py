"""From an agent that exists to the first refusal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from langchain.agents import create_agent

from rpms.commands.desk_from_tools import skeleton
from rpms.guard import RulesGuard
from rpms.rules.schema import EnvironmentTier
from tests.examples.conftest import Shell
from tests.guard.desk.playing import ASKED, answers, refused, script

OWN = '''
from datetime import date

PAID = []


def get_sale(sale_id: str) -> dict:
    """Look a sale up."""
    return {"sale_id": sale_id, "total": 60}


def pay_back(sale_id: str, euros: float, on: date | None = None, items: list[str] = []) -> str:
    """Pay back."""
    PAID.append(euros)
    return "done"


tools = [get_sale, pay_back]
'''
POLICY = """# Refunds

Pay back at most what it cost. Be kind.

Pay back at most what it cost.
"""


def uncommented(rules: str) -> str:
    """The file with its sample rule in force."""
    return rules.replace("policy: []", "policy:").replace("#  - {", "  - {")


def test_from_tools_to_the_first_refusal(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "policy.md").write_text(POLICY)
    written = shell("rpms worlds new shopdesk --from own:tools --policy policy.md", tmp_path)
    assert written.code == 0 and "RulesGuard(WORLD)" in written.out
    checked = shell("rpms rules check --env shopdesk --policy policy.md", tmp_path)
    assert checked.code == 0 and "not yet decided: Be kind." in checked.out
    strict = shell("rpms rules check --env shopdesk --strict", tmp_path)
    assert strict.code == 2 and "not_checkable: not yet decided: Be kind." in strict.out
    file = tmp_path / "shopdesk" / "rules" / "environment.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(uncommented(text))
    assert shell("rpms rules check --env shopdesk", tmp_path).code == 0
    rules = yaml.safe_load(text)
    assert [each["name"] for each in rules["actions"]] == ["get_sale", "pay_back"]
    assert rules["actions"][1]["arguments"] == {
        "sale_id": {"as": "sale", "type": "text"}, "euros": {"as": "euros", "type": "number"},
        "on": {"as": "on", "type": "date"}, "items": {"as": "items", "type": "list"},
    }  # fmt: skip
    rules["actions"][0]["records"] = ["sale_id"]
    need = {"id": "P-FIRST", "source": "Pay back at most what it cost.", "action": "pay_back",
            "needs": ["at_most(euros, sale.total)"]}  # fmt: skip
    rules["policy"], rules["not_checkable"] = [need], {"Be kind.": "about words"}
    file.write_text(yaml.safe_dump(rules))
    assert shell("rpms rules check --env shopdesk --policy policy.md", tmp_path).code == 0
    (tmp_path / "new.md").write_text("Pay back at most half of it. Be kind.")
    strict = shell("rpms rules check --env shopdesk --policy new.md --strict", tmp_path)
    assert strict.code == 2
    assert "policy: no rule cites line 1: Pay back at most half of it." in strict.out
    assert "P-FIRST: its source is not in the policy" in strict.out
    sys.path.insert(0, str(tmp_path))
    try:
        from own import PAID, tools  # type: ignore[import-not-found]
        from shopdesk.world import WORLD  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(tmp_path))
    middleware: Any = [RulesGuard(WORLD)]
    paid = [[("pay_back", {"sale_id": "S1", "euros": euros})] for euros in (61, 60)]
    replies: Any = [[("get_sale", {"sale_id": "S1"})], *paid]
    agent: Any = create_agent(script(replies), tools, middleware=middleware)
    assert refused(answers(agent.invoke(ASKED))) == [False, True, False] and PAID == [60.0]


def by_name(order_id: str) -> str:
    """Look an order up."""
    return order_id


def by_number(order_id: int) -> str:
    """Look an order up."""
    return str(order_id)


def pay(order_id: int, usd: float) -> str:
    """Pay."""
    return f"{order_id}: {usd}"


def close() -> str:
    """Close the shop."""
    return "closed"


@pytest.mark.parametrize(
    ("tool", "need"),
    [(by_name, "given(order)"), (by_number, "given(order)"), (pay, "at_most(usd, 100)"),
     (close, "equal(context.role, clerk)")],
)  # fmt: skip
def test_the_sample_rule_loads_and_names_an_argument_as_the_rules_do(
    tool: Callable[..., str], need: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "own_tools", SimpleNamespace(tools=[tool]))
    written = skeleton("x", "own_tools:tools")["rules/environment.yaml"]
    rules = yaml.safe_load(uncommented(written))
    (rule,) = EnvironmentTier.model_validate(rules).policy
    assert need in rule.needs and rule.action == [tool.__name__]


def test_what_is_no_list_of_tools_is_an_error() -> None:
    with pytest.raises(Exception, match="no list of tools"):
        skeleton("x", "sys:path_hooks.__len__")
