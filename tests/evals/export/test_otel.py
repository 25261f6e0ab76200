"""OpenTelemetry spans, read back with the protocol's own messages."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from rpms.evals.export import Counted, export_run
from rpms.evals.export.otel import traces
from rpms.evals.run_files import read_run
from tests.evals.sample_runs import write_run

KNOWN = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)}


def spans(document: dict[str, Any]) -> list[dict[str, Any]]:
    (resource,) = document["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    found: list[dict[str, Any]] = scope["spans"]
    return found


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def parse(document: dict[str, Any]) -> Any:
    """OTLP/JSON is protobuf's JSON, but for ids, which are hexadecimal."""
    copy = json.loads(json.dumps(document))
    for span in spans(copy):
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return ParseDict(copy, TracesData())


def check(document: dict[str, Any]) -> None:
    root, *others = spans(document)
    assert (len(root["traceId"]), len(root["spanId"])) == (32, 16) and "parentSpanId" not in root
    assert {span["parentSpanId"] for span in others} == {root["spanId"]}
    assert len({span["spanId"] for span in spans(document)}) == len(others) + 1
    for span in spans(document):
        told = attributes(span)
        assert span["name"].startswith(told["gen_ai.operation.name"])
        assert not {name for name in told if name.startswith("gen_ai")} - KNOWN
        assert int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        assert int(span["endTimeUnixNano"]) <= int(root["endTimeUnixNano"])
        assert ("error.type" in told) == (span["status"].get("code") == 2)
    read = parse(document).resource_spans[0].scope_spans[0].spans
    assert [span.name for span in read] == [span["name"] for span in spans(document)]


def test_an_episode_as_spans(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, {"D": [True, False]}))
    for played in Counted(run, ["D"], prompts=False):
        document = traces(played)
        check(document)
        found = [attributes(span) for span in spans(document)]
        chats = [one for one in found if one["gen_ai.operation.name"] == "chat"]
        assert len(chats) == len(played.steps)
        said = [
            json.loads(one["gen_ai.output.messages"])[0]["parts"][0]["content"] for one in chats
        ]
        assert said == [step["reply"] for step in played.steps]
        assert all("gen_ai.input.messages" not in one for one in found)
        tools = [one for one in found if one["gen_ai.operation.name"] == "execute_tool"]
        assert [one.get("error.type") for one in tools] == [
            "refused" if step["failed"] else None for step in played.steps
        ]
        assert document == traces(played), "the same episode is the same trace"


def test_prompts_and_errors(tmp_path: Path) -> None:
    lines = {("A", 0): {"failure_mode": "model_error", "error": "no key"}}
    run = read_run(write_run(tmp_path, {"A": [False]}, lines=lines))
    (played,) = Counted(run, ["A"], prompts=True)
    root, chat, *_ = spans(traces(played))
    assert attributes(root)["error.type"] == "model_error" and root["status"]["message"] == "no key"
    asked = json.loads(attributes(chat)["gen_ai.input.messages"])
    texts = [(one["role"], one["parts"][0]["content"]) for one in asked]
    assert texts == played.messages(played.steps[0])


@pytest.mark.engine
def test_a_real_run(real_run: Path, tmp_path: Path) -> None:
    run = read_run(real_run)
    export_run(run, "otel", tmp_path / "spans.jsonl")
    documents = [json.loads(line) for line in (tmp_path / "spans.jsonl").read_text().splitlines()]
    assert len(documents) == len(run.episodes)
    assert len({spans(document)[0]["traceId"] for document in documents}) == len(documents)
    for document in documents:
        check(document)
