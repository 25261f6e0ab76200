"""Writes the skeleton of a desk for one's own tools and policy: ``rpms worlds new --from``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as as_tool

from rpms.guard.sources import UNDECIDED, split_sentences
from rpms.guard.tools import arguments_of
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import json_bytes
from rpms.vocabulary.imports import load_object

TYPES = {"string": "text", "number": "number", "integer": "number", "boolean": "boolean",
         "array": "list", "object": "object"}  # fmt: skip
WORLD = '''"""The tools of {name}, and the world that the guard reads."""

from __future__ import annotations

from typing import Any

import rpms
from rpms.vocabulary.imports import load_object


class Desk(rpms.ToolWorld):
    """The rules are beside this file."""

    def tools(self) -> list[Any]:
        """`rpms rules check` compares them with the rules."""
        found = load_object("{path}", "the tools")
        return [*found()] if callable(found) else [*found]


WORLD = Desk()
'''
DOMAIN = """# Tier 2: what the agent is for. One goal with one step is enough for a guard.
procedures:
  help: [help]
"""
HEAD = """# yaml-language-server: $schema=environment.schema.json
# Editors read that schema after: rpms rules schema > {name}/rules/environment.schema.json
# Tier 3: what each tool takes and does, and what the policy demands of its calls.

actions:  # arguments: the name in the tool, then its name in the rules and its type
"""
ANSWERS = (
    "    # its answers: shows: {thing}; or records: [FIELD]; or answers: outside, of a search;\n"
    "    # records: [] if it only acts\n"
)
POLICY = """
policy: []  # a rule for each sentence below: move it here and delete [], for example
#  - {{id: P-FIRST, source: THE SENTENCE, action: {tool}, needs: [{needs}]}}

not_checkable:  # or say why no call can show it, instead of 'not yet decided'
"""


def load_tools(path: str) -> list[BaseTool]:
    """The tools at an import path: a list of them, or a function that makes one."""
    found = load_object(path, "the tools")
    if callable(found) and not isinstance(found, BaseTool):
        found = found()
    listed = [found] if isinstance(found, BaseTool) else found
    if not isinstance(listed, list | tuple) or not listed:
        raise RpmsError(f"--from: '{path}' is no list of tools, and no function that makes one")
    return [each if isinstance(each, BaseTool) else as_tool(each) for each in listed]


def skeleton(name: str, path: str, policy: str = "") -> Mapping[str, str]:
    """The files of a desk by their names."""
    tools = load_tools(path)
    rules = HEAD.format(name=name) + "".join(map("".join, map(_action, tools)))
    rules += POLICY.format(**_sample(tools))
    sentences = [sentence.text for sentence in split_sentences(policy)]
    rules += "".join(f"  {_quoted(each)}: {UNDECIDED}\n" for each in dict.fromkeys(sentences))
    if not sentences:
        rules = rules.replace("not_checkable:  #", "not_checkable: {}  #")
    return {
        "__init__.py": f'"""The guard of {name}."""\n',
        "world.py": WORLD.format(name=name, path=path),
        "rules/domain.yaml": DOMAIN,
        "rules/environment.yaml": rules,
        **({"policy.md": policy} if policy else {}),
    }


def _sample(tools: Sequence[BaseTool]) -> dict[str, str]:
    """A rule that loads: bounds of an amount, else that an argument is given."""
    sample = {"tool": tools[0].name, "needs": '"equal(context.role, clerk)"'}
    for tool in tools:
        names = _rule_names(tool)
        for argument, schema in arguments_of(tool).items():
            name = names[argument]
            if name == argument and _type(schema) == "number":  # an amount, not the id of a thing
                bounds = f'"at_least({name}, 0.01)", "at_most({name}, 100)"'
                return {"tool": tool.name, "needs": bounds}
            sample = {"tool": tool.name, "needs": f'"given({name})"'}
    return sample


def _rule_names(tool: BaseTool) -> dict[str, str]:
    """Each argument's name in the rules: that of the thing, if only one argument is its id."""
    stems = {argument: argument.removesuffix("_id") for argument in arguments_of(tool)}
    taken = [*stems.values()]
    return {
        argument: stem if taken.count(stem) == 1 else argument for argument, stem in stems.items()
    }


def _action(tool: BaseTool) -> Iterator[str]:
    yield f"  - id: T-{tool.name.upper().replace('_', '-')}\n    name: {tool.name}\n"
    arguments = arguments_of(tool)
    names = _rule_names(tool)
    things = [name for argument, name in names.items() if name != argument]
    yield "    arguments:\n" if arguments else "    arguments: []\n"
    for argument, schema in arguments.items():
        kind = _type(schema)
        parts = [f"as: {_word(names[argument])}"] + ([f"type: {kind}"] if kind else [])
        yield f"      {_word(argument)}: {{{', '.join(parts)}}}\n"
    yield ANSWERS.format(thing=(things or ["THING"])[0])


def _type(schema: Mapping[str, Any]) -> str:
    """The type of an argument in the rules; empty if it has none or several."""
    choices = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    if len(choices) != 1:
        return ""
    if choices[0].get("format") in ("date", "date-time"):
        return "date"
    return TYPES.get(str(choices[0].get("type")), "")


def _word(name: str) -> str:
    """A name as YAML reads it as text: ``on`` would be true."""
    return name if yaml.safe_load(name) == name else _quoted(name)


def _quoted(text: str) -> str:
    return json_bytes(text).decode()
