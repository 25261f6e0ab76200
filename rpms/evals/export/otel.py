"""An episode as OpenTelemetry spans with ``gen_ai`` attributes, as OTLP/JSON.

One line is one ``TracesData`` with the trace of one episode, which is what a collector's file
receiver reads: an ``invoke_agent`` span over the whole, and in it for each step a ``chat`` span
for the model's reply and an ``execute_tool`` span for the action. The conventions for GenAI are
still in development; these are the names of version 1.41. Messages and prompts are structured
data, written as JSON text where an attribute of a span takes plain values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from rpms.evals.export.played import AGENT, TOOL, Played
from rpms.evals.refusals import in_prompt, shown_rules

INTERNAL, CLIENT = 1, 3
ERROR = 2
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"


def traces(played: Played) -> dict[str, Any]:
    """The spans of one episode as a whole document."""
    scope = {"name": AGENT, "version": played.version}
    resource = {"service.name": AGENT, "service.version": played.version}
    spans = {"scope": scope, "spans": _spans(played), "schemaUrl": SCHEMA_URL}
    return {
        "resourceSpans": [
            {"resource": {"attributes": _attributes(resource)}, "scopeSpans": [spans]}
        ]
    }


def _spans(played: Played) -> list[dict[str, Any]]:
    root = _whole(played)
    spans = [root]
    for step, began in zip(played.steps, played.times(), strict=True):
        ended = began + timedelta(seconds=step["seconds"])
        spans.append(_chat(played, step, began, ended))
        if step["action"]:
            spans.append(_act(played, step, ended))
    for span in spans[1:]:
        span["parentSpanId"] = root["spanId"]
    return spans


def _whole(played: Played) -> dict[str, Any]:
    one, began = played.episode, played.began()
    took = max(one.seconds, sum(step["seconds"] for step in played.steps))
    span = _span(played, f"invoke_agent {AGENT}", INTERNAL, began, began + timedelta(seconds=took))
    error = one.failure_mode if one.is_error else None
    about = {f"rpms.{name}": value for name, value in played.about.items()}
    return _filled(span, error, one.error, {
        **_common(played, "invoke_agent"),
        "gen_ai.agent.version": played.version,
        "gen_ai.usage.input_tokens": one.prompt_tokens,
        "gen_ai.usage.cache_read.input_tokens": one.cached_tokens,
        "gen_ai.usage.output_tokens": one.output_tokens,
        "rpms.cost_usd": one.cost_usd,
        **about,
    })  # fmt: skip


def _chat(played: Played, step: dict[str, Any], began: datetime, ended: datetime) -> dict[str, Any]:
    usage, settings = step["usage"], played.settings
    span = _span(played, f"chat {played.model}", CLIENT, began, ended, f"chat {step['step']}")
    parts = [{"type": "text", "content": step["reply"]}]
    said = [{"role": "assistant", "parts": parts, "finish_reason": "stop"}]
    asked = [
        {"role": role, "parts": [{"type": "text", "content": text}]}
        for role, text in played.messages(step)
    ]
    error = None if step["reply"] or not played.episode.is_error else played.episode.failure_mode
    return _filled(span, error, played.episode.error, {
        **_common(played, "chat"),
        "gen_ai.request.temperature": settings.get("temperature"),
        "gen_ai.request.seed": settings.get("seed"),
        "gen_ai.usage.input_tokens": usage["prompt_tokens"],
        "gen_ai.usage.cache_read.input_tokens": usage["cached_tokens"],
        "gen_ai.usage.output_tokens": usage["output_tokens"],
        "gen_ai.output.messages": json.dumps(said, ensure_ascii=False),
        "gen_ai.input.messages": json.dumps(asked, ensure_ascii=False) if played.prompts else None,
        "rpms.step": step["step"],
        "rpms.sub_goal": step["sub_goal"]["name"],
        "rpms.rules": sorted(shown_rules(step)),
        "rpms.memories": [str(r["entry"].get("id", "")) for r in in_prompt(step, settings)],
        "rpms.replayed": step.get("replayed"),
        "rpms.cost_usd": step.get("cost_usd"),
    })  # fmt: skip


def _act(played: Played, step: dict[str, Any], at: datetime) -> dict[str, Any]:
    span = _span(played, f"execute_tool {TOOL}", INTERNAL, at, at, f"act {step['step']}")
    return _filled(span, "refused" if step["failed"] else None, step["result"], {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.agent.name": AGENT,
        "gen_ai.conversation.id": played.id,
        "gen_ai.tool.name": TOOL,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": f"call_{step['step']}",
        "gen_ai.tool.call.arguments": json.dumps({"action": step["action"]}, ensure_ascii=False),
        "gen_ai.tool.call.result": json.dumps({"observation": step["result"]}, ensure_ascii=False),
        "rpms.step": step["step"],
        "rpms.lacked": step.get("lacked"),
    })  # fmt: skip


def _common(played: Played, operation: str) -> dict[str, Any]:
    provider, _, _ = played.model.partition(":")
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": played.model.partition(":")[2] or played.model,
        "gen_ai.agent.name": AGENT,
        "gen_ai.conversation.id": played.id,
    }


def _span(
    played: Played, name: str, kind: int, began: datetime, ended: datetime, part: str = ""
) -> dict[str, Any]:
    """Ids follow from the episode: exported twice, a trace is still the same trace."""
    return {
        "traceId": _digest(played.id, 16),
        "spanId": _digest(f"{played.id} {part}", 8),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": _nanoseconds(began),
        "endTimeUnixNano": _nanoseconds(ended),
    }


def _filled(
    span: dict[str, Any], error: str | None, words: str, attributes: Mapping[str, Any]
) -> dict[str, Any]:
    known = {"error.type": error, **attributes}
    span["attributes"] = _attributes({k: v for k, v in known.items() if v not in (None, "")})
    span["status"] = {"code": ERROR, "message": words} if error else {}
    return span


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode(), digest_size=size).hexdigest()


def _nanoseconds(time: datetime) -> str:
    """OTLP/JSON writes 64-bit numbers as text. Counted in whole microseconds, which is exact."""
    whole, rest = divmod(time - datetime.fromtimestamp(0, time.tzinfo), timedelta(seconds=1))
    return str((whole * 1_000_000 + rest.microseconds) * 1000)


def _attributes(known: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in known.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}
