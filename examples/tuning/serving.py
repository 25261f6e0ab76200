"""A small OpenAI-compatible server: whatever waits is answered in one batch, greedily.

Every prompt is read whole. Keeping the keys and values of the beginning that prompts share was
tried on an H200 and took seven times as long: it leaves the fast attention kernels.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

WAIT_S = 0.03
MOST = 320
"""Prompts in one batch at most, and below that as many tokens as fit."""
REPLY_TOKENS = 256


class Answer(NamedTuple):
    """A reply, or what went wrong."""

    text: str
    tokens: int
    error: str = ""


@dataclass
class Question:
    """One prompt that waits for its reply of at most so many tokens."""

    ids: list[int]
    most: int
    answer: Answer | None = None
    ready: threading.Event = field(default_factory=threading.Event)


def grouped(waiting: Sequence[Question], tokens: int) -> Iterator[list[Question]]:
    """Batches of about the same length, short ones first, each within ``tokens``."""
    batch: list[Question] = []
    for one in sorted(waiting, key=lambda one: len(one.ids)):
        if batch and (len(batch) + 1) * (len(one.ids) + one.most) > tokens:
            yield batch
            batch = []
        batch.append(one)
    yield batch


class Generator:
    """The model's side: batches in, replies out."""

    def __init__(self, loaded: Any, tokens: int) -> None:
        """``tokens`` bounds a batch with its replies."""
        self._loaded, self._tokens = loaded, tokens
        ends = [loaded.tokenizer.eos_token_id, *_also_ends(loaded.model)]
        self._ends = [*dict.fromkeys(end for end in ends if end is not None)]

    def work(self, waiting: queue.Queue[Question]) -> None:
        """Answer for ever."""
        while True:
            questions = [waiting.get()]
            while len(questions) < MOST:
                try:
                    questions.append(waiting.get(timeout=WAIT_S))
                except queue.Empty:
                    break
            for batch in grouped(questions, self._tokens):
                self.answer(batch)

    def answer(self, batch: list[Question]) -> None:
        """Reply to all of a batch; trouble is each one's error and not the server's end."""
        try:
            replies = [Answer(*one) for one in self._generate(batch)]
        except Exception as error:
            replies = [Answer("", 0, f"{type(error).__name__}: {error}")] * len(batch)
        for one, reply in zip(batch, replies, strict=True):
            one.answer = reply
            one.ready.set()

    def _generate(self, batch: list[Question]) -> Iterator[tuple[str, int]]:
        import torch

        model, tokenizer, device = self._loaded
        longest = max(len(one.ids) for one in batch)
        gaps = [longest - len(one.ids) for one in batch]
        rows = [[tokenizer.pad_token_id] * gap + one.ids
                for gap, one in zip(gaps, batch, strict=True)]  # fmt: skip
        seen = [[0] * gap + [1] * (longest - gap) for gap in gaps]
        with torch.inference_mode():
            made = model.generate(
                input_ids=torch.tensor(rows, device=device),
                attention_mask=torch.tensor(seen, device=device),
                max_new_tokens=max(one.most for one in batch),
                do_sample=False, temperature=None, top_p=None, top_k=None,
                eos_token_id=self._ends, pad_token_id=tokenizer.pad_token_id,
            )  # fmt: skip
        for one, row in zip(batch, made[:, longest:].tolist(), strict=True):
            end = next((i for i, token in enumerate(row) if token in self._ends), len(row))
            said = row[: min(end, one.most)]
            yield tokenizer.decode(said, skip_special_tokens=True), len(said)


def _also_ends(model: Any) -> list[int]:
    ends = model.generation_config.eos_token_id
    return ends if isinstance(ends, list) else [ends]


def plain_messages(body: dict[str, Any]) -> list[dict[str, str]]:
    """The messages of a request; content may come as a text or as a list of parts."""
    found = []
    for one in body["messages"]:
        content = one["content"]
        if not isinstance(content, str):
            content = "".join(part.get("text", "") for part in content)
        found.append({"role": one["role"], "content": content})
    return found


def serve(loaded: Any, port: int, tokens: int) -> None:
    """Answer ``/v1/chat/completions`` on this machine until interrupted."""
    from tuning.data import encode, render

    waiting: queue.Queue[Question] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """One line for each of thousands of requests helps nobody."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            messages = plain_messages(body)
            most = body.get("max_completion_tokens") or body.get("max_tokens") or REPLY_TOKENS
            text = render(loaded.tokenizer, messages, True)
            one = Question(encode(loaded.tokenizer, text), int(most))
            waiting.put(one)
            one.ready.wait()
            status, reply = completion(one, str(body.get("model", "")))
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    class Server(ThreadingHTTPServer):
        request_queue_size = 512
        daemon_threads = True

    threading.Thread(target=Generator(loaded, tokens).work, args=(waiting,), daemon=True).start()
    with Server(("127.0.0.1", port), Handler) as server:
        print(f"serving http://127.0.0.1:{server.server_port}/v1", flush=True)
        server.serve_forever()


def completion(one: Question, model: str) -> tuple[int, dict[str, Any]]:
    """The HTTP status and the body that OpenAI's clients read."""
    answer = one.answer or Answer("", 0, "no reply")
    if answer.error:
        return 500, {"error": {"message": answer.error, "type": "server_error"}}
    usage = {"prompt_tokens": len(one.ids), "completion_tokens": answer.tokens,
             "total_tokens": len(one.ids) + answer.tokens}  # fmt: skip
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text},
        "finish_reason": "stop" if answer.tokens < one.most else "length",
    }
    return 200, {"id": "chatcmpl-tune", "object": "chat.completion", "created": 0, "model": model,
                 "choices": [choice], "usage": usage}  # fmt: skip
