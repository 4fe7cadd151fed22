"""A model that streams so many tokens at so many a second to everyone who asks, over OpenAI's API. Prints its port."""

from __future__ import annotations

import asyncio
import json
import sys


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tokens: int, rate: float) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            if not lengths:  # not a question to the model: somebody looks what kind of server this is
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                continue
            await reader.readexactly(int(lengths[0].split(b":")[1]))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            began = asyncio.get_running_loop().time()
            for number in range(tokens):
                await asyncio.sleep(max(began + (number + 1) / rate - asyncio.get_running_loop().time(), 0))
                _send(writer, _chunk({"role": "assistant", "content": f"token{number} "}, None))
                await writer.drain()
            _send(writer, _chunk({}, "stop"))
            _send(writer, b"data: [DONE]\n\n")
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _chunk(delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "loopback", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n".encode()


def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


async def main(tokens: int, rate: float) -> None:
    server = await asyncio.start_server(lambda r, w: answer(r, w, tokens, rate), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
