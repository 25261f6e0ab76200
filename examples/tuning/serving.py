"""A small OpenAI-compatible server: whatever waits is answered in one batch, greedily.

Prompts of one run begin alike (instructions, example, rules). The keys and values of that common
beginning are computed once and kept, so that a batch reads only what is new in each prompt.
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
BLOCK, WORTH = 64, 128
"""A common beginning counts in whole blocks, and from this length on."""
KEPT = 64


class Answer(NamedTuple):
    """A reply, or what went wrong."""

    text: str
    tokens: int
    error: str = ""


@dataclass
class Question:
    """One prompt that waits for its reply; ``key`` is alike for prompts that begin alike."""

    ids: list[int]
    most: int
    key: str = ""
    answer: Answer | None = None
    ready: threading.Event = field(default_factory=threading.Event)


def grouped(waiting: Sequence[Question], tokens: int) -> Iterator[list[Question]]:
    """Batches of prompts that begin alike, short ones first, each within ``tokens``."""
    groups: dict[str, list[Question]] = {}
    for one in waiting:
        groups.setdefault(one.key, []).append(one)
    for group in groups.values():
        batch: list[Question] = []
        for one in sorted(group, key=lambda one: len(one.ids)):
            if batch and (len(batch) + 1) * (len(one.ids) + one.most) > tokens:
                yield batch
                batch = []
            batch.append(one)
        yield batch


def common_beginning(prompts: Sequence[list[int]]) -> int:
    """How many first tokens all share, in whole blocks; one of each prompt is always left."""
    if len(prompts) < 2:
        return 0
    first, last = min(prompts), max(prompts)  # in order of their tokens, all others lie between
    most = min(len(prompt) for prompt in prompts) - 1
    same = next((i for i in range(most) if first[i] != last[i]), most)
    whole = same // BLOCK * BLOCK
    return whole if whole >= WORTH else 0


class Generator:
    """The model's side: batches in, replies out."""

    def __init__(self, loaded: Any, tokens: int) -> None:
        """``tokens`` bounds a batch with its replies."""
        self._loaded, self._tokens = loaded, tokens
        self._beginnings: dict[tuple[int, ...], list[tuple[Any, Any]]] = {}
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
        shared = common_beginning([one.ids for one in batch])
        rest = max(len(one.ids) for one in batch) - shared
        rows, seen = [], []
        for one in batch:
            # Padding goes between the common beginning and what is new.
            gap = rest - (len(one.ids) - shared)
            pad = [tokenizer.pad_token_id] * gap
            rows.append([*one.ids[:shared], *pad, *one.ids[shared:]])
            seen.append([1] * shared + [0] * gap + [1] * (rest - gap))
        more = {"past_key_values": self._cache(batch, shared)} if shared else {}
        with torch.inference_mode():
            made = model.generate(
                input_ids=torch.tensor(rows, device=device),
                attention_mask=torch.tensor(seen, device=device),
                max_new_tokens=max(one.most for one in batch),
                do_sample=False, temperature=None, top_p=None, top_k=None,
                eos_token_id=self._ends, pad_token_id=tokenizer.pad_token_id, **more,
            )  # fmt: skip
        for one, row in zip(batch, made[:, shared + rest :].tolist(), strict=True):
            end = next((i for i, token in enumerate(row) if token in self._ends), len(row))
            said = row[: min(end, one.most)]
            yield tokenizer.decode(said, skip_special_tokens=True), len(said)

    def _cache(self, batch: list[Question], shared: int) -> Any:
        """Keys and values of the common beginning, one copy for each prompt of the batch."""
        import torch
        from transformers import DynamicCache

        model, device = self._loaded.model, self._loaded.device
        beginning = tuple(batch[0].ids[:shared])
        if beginning not in self._beginnings:
            if len(self._beginnings) >= KEPT:
                self._beginnings.clear()
            cache = DynamicCache(config=model.config)
            ids = torch.tensor([beginning], device=device)
            with torch.inference_mode():
                model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
            self._beginnings[beginning] = [(one.keys, one.values) for one in cache.layers]
        whole = DynamicCache(config=model.config)
        for number, (keys, values) in enumerate(self._beginnings[beginning]):
            copies = (len(batch), -1, -1, -1)
            whole.update(keys.expand(*copies), values.expand(*copies), number)
        return whole


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
            key = "\n".join(one["content"][:200] for one in messages[:2])
            one = Question(encode(loaded.tokenizer, render(loaded.tokenizer, messages, True)),
                           int(most), key)  # fmt: skip
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
