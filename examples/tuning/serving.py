"""A small OpenAI-compatible server: whatever waits is answered in one batch, greedily.

Every prompt is read whole. Keeping the keys and values of the beginning that prompts share was
tried on an H200 and took seven times as long: it leaves the fast attention kernels.
"""

from __future__ import annotations

import hashlib
import json
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WAIT_S = 0.03
MOST = 320
"""Prompts in one batch at most, and below that as many tokens as fit."""
REPLY_TOKENS = 256
NAME = "tuned"
"""Its name in the list of models; requests may use any other."""


@dataclass
class Question:
    """One prompt, and its reply of at most so many tokens once it is ready, or what went wrong."""

    ids: list[int]
    most: int
    text: str = ""
    tokens: int = 0
    error: str = ""
    ready: threading.Event = field(default_factory=threading.Event)


def grouped(waiting: Sequence[Question], tokens: int) -> Iterator[list[Question]]:
    """Batches of about the same length, short ones first, each within ``tokens``."""
    batch: list[Question] = []
    for question in sorted(waiting, key=lambda question: len(question.ids)):
        if batch and (len(batch) + 1) * (len(question.ids) + question.most) > tokens:
            yield batch
            batch = []
        batch.append(question)
    yield batch


class Generator:
    """The model's side: batches in, replies out."""

    def __init__(self, loaded: Any, tokens: int) -> None:
        """``tokens`` bounds a batch with its replies."""
        self._loaded, self._tokens = loaded, tokens
        also = loaded.model.generation_config.eos_token_id
        ends = [loaded.tokenizer.eos_token_id, *(also if isinstance(also, list) else [also])]
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
            self._generate(batch)
        except Exception as error:
            for question in batch:
                question.error = f"{type(error).__name__}: {error}"
        for question in batch:
            question.ready.set()

    def _generate(self, batch: list[Question]) -> None:
        import torch

        model, tokenizer, device = self._loaded
        longest = max(len(question.ids) for question in batch)
        gaps = [longest - len(question.ids) for question in batch]
        rows = [[tokenizer.pad_token_id] * gap + question.ids
                for gap, question in zip(gaps, batch, strict=True)]  # fmt: skip
        seen = [[0] * gap + [1] * (longest - gap) for gap in gaps]
        with torch.inference_mode():
            generated = model.generate(
                input_ids=torch.tensor(rows, device=device),
                attention_mask=torch.tensor(seen, device=device),
                max_new_tokens=max(question.most for question in batch),
                do_sample=False, temperature=None, top_p=None, top_k=None,
                eos_token_id=self._ends, pad_token_id=tokenizer.pad_token_id,
            )  # fmt: skip
        for question, row in zip(batch, generated[:, longest:].tolist(), strict=True):
            end = next((i for i, token in enumerate(row) if token in self._ends), len(row))
            reply = row[: min(end, question.most)]
            question.text = tokenizer.decode(reply, skip_special_tokens=True)
            question.tokens = len(reply)


def answer_requests(loaded: Any, port: int, tokens: int) -> None:
    """Answer ``/v1/chat/completions`` and ``/v1/models`` on this machine until interrupted."""
    from tuning.data import encode, render

    waiting: queue.Queue[Question] = queue.Queue()
    # By the digest a client can tell this tuning from the last one under the same address.
    entry = {"id": NAME, "object": "model", "created": 0, "owned_by": "examples/tune.py",
             "digest": weights_digest(loaded.model)}  # fmt: skip

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """One line for each of thousands of requests helps nobody."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            most = body.get("max_completion_tokens") or body.get("max_tokens") or REPLY_TOKENS
            text = render(loaded.tokenizer, body["messages"], True)
            question = Question(encode(loaded.tokenizer, text), int(most))
            waiting.put(question)
            question.ready.wait()
            reply = completion(question, str(body.get("model", "")))
            self.send(500 if question.error else 200, reply)

        def do_GET(self) -> None:
            found = self.path.rstrip("/").endswith("/models")
            error = {"error": {"message": f"no {self.path} here", "type": "not_found"}}
            models = {"object": "list", "data": [entry]}
            self.send(*((200, models) if found else (404, error)))

        def send(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
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


def weights_digest(model: Any) -> str:
    """A checksum of all weights: some seconds for each billion of them."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def completion(question: Question, model: str) -> dict[str, Any]:
    """What OpenAI's clients read."""
    if question.error:
        return {"error": {"message": question.error, "type": "server_error"}}
    read, written = len(question.ids), question.tokens
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": question.text},
        "finish_reason": "stop" if written < question.most else "length",
    }
    return {"id": "chatcmpl-tune", "object": "chat.completion", "created": 0, "model": model,
            "choices": [choice], "usage": usage}  # fmt: skip
