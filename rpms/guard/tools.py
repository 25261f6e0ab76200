"""Compares an agent's tools with the manual: names and arguments must match."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ValidationError

from rpms.rules import Manual
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.spelling import offer

Unknown = Literal["refuse", "allow"] | Collection[str]
"""Tools that need no rule: none, all that the manual does not have, or these names."""


def is_allowed(tool: str, unknown: Unknown) -> bool:
    """Return whether a tool without a rule may be called."""
    return unknown == "allow" if isinstance(unknown, str) else tool in unknown


def arguments_of(tool: Any) -> dict[str, Any]:
    """The arguments that a model passes to a tool, each with its JSON schema."""
    schema = convert_to_openai_tool(tool)["function"].get("parameters", {})
    return dict(schema.get("properties", {}))


def defaults_of(tool: Any) -> dict[str, Any]:
    """The values of arguments that a call may omit."""
    arguments = arguments_of(tool).items()
    return {name: part["default"] for name, part in arguments if "default" in part}


class ArgumentIntake:
    """Converts arguments as a tool would: to the tool's types, with its defaults."""

    def __init__(self, tool: Any) -> None:
        self.source = getattr(tool, "args_schema", None)
        schema = tool.tool_call_schema if isinstance(tool, BaseTool) else None
        typed = isinstance(schema, type) and issubclass(schema, BaseModel)
        self.model: type[BaseModel] | None = schema if typed else None  # type: ignore[assignment]
        self.defaults = defaults_of(tool) if tool is not None else {}

    def take(self, arguments: Mapping[str, Any]) -> ToolArguments:
        filled = {**self.defaults, **arguments}
        if self.model is None:
            return ToolArguments(filled, filled)
        try:
            model = self.model.model_validate(dict(arguments))
        except ValidationError:
            return ToolArguments(filled, filled, valid=False)
        return ToolArguments(filled, {**arguments, **model.model_dump(mode="json", fallback=str)})


class ToolArguments(NamedTuple):
    """The arguments of a call with the tool's defaults, and converted to the tool's types.

    If they are not ``valid``, the tool will reject them.
    """

    filled: Mapping[str, Any]
    converted: Mapping[str, Any]
    valid: bool = True


def name_of(tool: Any) -> str:
    """A tool's name; for a provider's tool, its type."""
    if isinstance(tool, Mapping):
        function = tool.get("function", {})
        return str(function.get("name") or tool.get("name") or tool.get("type"))
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", tool))


def tool_problems(
    manual: Manual, tools: Sequence[Any], unknown: Unknown = "refuse", partial: bool = False
) -> Iterator[tuple[str, str]]:
    """Every difference between tools and manual, each with the rule id or section."""
    names = [name_of(tool) for tool in tools]
    for name, tool in zip(names, tools, strict=True):
        rule = manual.by_name.get(name)
        if rule is None:
            if not is_allowed(name, unknown):
                near = offer(name, [*manual.by_name]) if manual.by_name else "it has none"
                problem = f"the rules do not have the tool '{name}': add it under 'actions'; {near}"
                yield "actions", problem
            continue
        arguments = arguments_of(tool)
        for argument in arguments:
            if argument not in rule.called:
                near = offer(argument, [*rule.called]) if rule.called else "it has none"
                problem = f"the rules do not have the argument '{argument}' of '{name}'; {near}"
                yield rule.id, problem
        for argument in rule.called:
            if argument not in arguments:
                near = offer(argument, [*arguments]) if arguments else "it takes none"
                yield rule.id, f"the tool '{name}' has no argument '{argument}'; {near}"
    for name in unknown if not isinstance(unknown, str) else ():
        if name not in names:
            near = offer(name, names) if names else "it has none"
            yield "unknown", f"the agent has no tool '{name}', which unknown= names; {near}"
    for rule in manual.actions if not partial else ():
        if rule.name not in names:
            near = offer(rule.name, names) if names else "it has none"
            yield rule.id, f"the agent has no tool '{rule.name}'; {near}"


def compare_tools(
    manual: Manual, tools: Sequence[Any], unknown: Unknown, partial: bool, world: str
) -> None:
    """Raise an error that names every difference."""
    problems = [f"[{rule}] {text}" for rule, text in tool_problems(manual, tools, unknown, partial)]
    if problems:
        advice = (
            "name the tools that need no rule in unknown=[...]; say partial=True where the agent "
            "has only some of the manual's tools"
        )
        found = "; ".join(problems)
        raise RpmsError(f"the tools do not fit the manual of '{world}': {found} ({advice})")
