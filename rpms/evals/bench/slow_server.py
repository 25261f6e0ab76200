"""An OpenAI-compatible server that answers the same text after a fixed time.

A stand-in for a model that thinks: what a run takes beyond that time is the runner's own doing.
It is a program of its own (``python slow_server.py LATENCY TEXT``), so that it takes no time
from the process that is measured, and it uses nothing but the standard library.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any


class SlowServer:
    """Counts what it is asked."""

    def __init__(self, latency: float, text: str) -> None:
        self.latency, self.text = latency, text
        self.forget()

    def forget(self) -> None:
        """Start counting anew."""
        self.requests = self.now = self.most = 0
        self.first = self.last = 0.0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection for as long as the client keeps it."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                line, _, fields = head.decode("latin-1").partition("\r\n")
                length = 0
                for field in fields.split("\r\n"):
                    name, _, value = field.partition(":")
                    if name.lower() == "content-length":
                        length = int(value)
                await reader.readexactly(length)
                answer = await self.answer(line.split()[1])
                data = json.dumps(answer).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                    b"content-length: %d\r\n\r\n%s" % (len(data), data)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, path: str) -> dict[str, Any]:
        """A completion after the latency, or the counts so far."""
        if path == "/stats":
            return {"requests": self.requests, "most": self.most, "first": self.first,
                    "last": self.last}  # fmt: skip
        if path == "/forget":
            self.forget()
            return {}
        self.first = self.first or time.time()
        self.requests += 1
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.latency)
        self.now -= 1
        self.last = time.time()
        message = {"role": "assistant", "content": self.text}
        return {
            "id": "1", "object": "chat.completion", "created": 0, "model": "slow",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 8, "total_tokens": 1008},
        }  # fmt: skip


async def main(latency: float, text: str) -> None:
    """Print the port, then serve until killed."""
    state = SlowServer(latency, text)
    server = await asyncio.start_server(state.handle, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), sys.argv[2]))
