"""The transport that calls an application in this process: part by part, and ended where nobody reads any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from denizen.client.in_process import AsgiApp, in_process_transport


async def echo(request: Request) -> PlainTextResponse:
    body = (await request.body()).decode()
    client = request.client.host if request.client else ""
    return PlainTextResponse(f"{request.method} {request.url} {client} {request.scope.get('who')}: {body}")


def an_app(*routes: Route) -> Starlette:
    return Starlette(routes=[Route("/echo", echo, methods=["GET", "POST"]), *routes])


def client_of(transport: httpx2.AsyncBaseTransport) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1")


async def test_request_and_response_are_passed_on() -> None:
    async def parts() -> AsyncGenerator[bytes]:
        for part in (b"one ", b"two"):
            yield part

    async with in_process_transport(an_app(), {"who": "noor"}) as transport, client_of(transport) as client:
        answer = await client.post("/echo?q=1", content=parts())
        assert (answer.status_code, answer.text) == (200, "POST http://127.0.0.1/echo?q=1 127.0.0.1 noor: one two")
        assert answer.headers["content-type"].startswith("text/plain")
        assert (await client.get("/nothing")).status_code == 404


async def test_a_header_does_not_become_part_of_the_scope() -> None:
    async with in_process_transport(an_app(), {"who": "noor"}) as transport, client_of(transport) as client:
        assert " noor: " in (await client.get("/echo", headers={"who": "eve", "type": "lifespan"})).text


async def test_a_stream_is_read_part_by_part_and_the_app_waits_for_its_reader() -> None:
    sent: list[int] = []
    more = asyncio.Event()

    async def counting(_: Request) -> StreamingResponse:
        async def numbers() -> AsyncGenerator[bytes]:
            for number in range(100):
                if number == 1:
                    await more.wait()
                sent.append(number)
                yield f"{number}\n".encode()

        return StreamingResponse(numbers())

    async with (
        in_process_transport(an_app(Route("/numbers", counting))) as transport,
        client_of(transport) as client,
        client.stream("GET", "/numbers") as answer,
    ):
        lines = answer.aiter_raw()
        assert await anext(lines) == b"0\n", "the first part is there before there is a second"
        more.set()
        assert await anext(lines) == b"1\n"
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(sent) < 10, "what nobody reads is not produced"
        assert [line async for line in lines][-1] == b"99\n"


async def test_closing_early_ends_the_request() -> None:
    ended = asyncio.Event()

    async def endless(_: Request) -> StreamingResponse:
        async def ticks() -> AsyncGenerator[bytes]:
            try:
                while True:
                    yield b"tick\n"
                    await asyncio.sleep(0)
            finally:
                ended.set()

        return StreamingResponse(ticks())

    async with in_process_transport(an_app(Route("/endless", endless))) as transport, client_of(transport) as client:
        async with client.stream("GET", "/endless") as answer:
            assert await anext(answer.aiter_raw()) == b"tick\n"
        async with asyncio.timeout(30):
            await ended.wait()


async def test_cancelling_the_caller_ends_the_request() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(_: Request) -> PlainTextResponse:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError("unreachable")

    async with in_process_transport(an_app(Route("/slow", slow))) as transport, client_of(transport) as client:
        async with asyncio.timeout(30):
            asking = asyncio.ensure_future(client.get("/slow"))
            await begun.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await ended.wait()


async def test_leaving_ends_what_is_still_open() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def endless(_: Request) -> StreamingResponse:
        async def silence() -> AsyncGenerator[bytes]:
            begun.set()
            try:
                await asyncio.Event().wait()
                yield b""
            finally:
                ended.set()

        return StreamingResponse(silence())

    async with asyncio.timeout(30), in_process_transport(an_app(Route("/endless", endless))) as transport:
        await client_of(transport).send(httpx2.Request("GET", "http://127.0.0.1/endless"), stream=True)
        await begun.wait()
    assert ended.is_set()


async def test_what_an_app_does_after_its_response_is_finished() -> None:
    """A response that was read completely is closed, and the application goes on."""
    finished = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise RuntimeError("no lifespan here")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})
        while (await receive())["type"] != "http.disconnect":
            pass
        finished.set()

    async with in_process_transport(app) as transport, client_of(transport) as client:
        assert (await client.get("/")).text == "done"
    assert finished.is_set()


def failing(*messages: dict[str, Any]) -> AsgiApp:
    """An application that sends this much and then fails."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages if scope["type"] == "http" else ():
            await send(message)
        raise ValueError("a defect")

    return app


BEGIN = {"type": "http.response.start", "status": 200, "headers": []}


async def test_an_error_before_the_response_is_raised() -> None:
    async with in_process_transport(failing()) as transport, client_of(transport) as client:
        with pytest.raises(ValueError, match="a defect"):
            await client.get("/")


async def test_an_error_in_the_response_breaks_it_off() -> None:
    app = failing(BEGIN, {"type": "http.response.body", "body": b"half", "more_body": True})
    async with in_process_transport(app) as transport, client_of(transport) as client:
        with pytest.raises(httpx2.ReadError):
            await client.get("/")


async def test_an_app_that_does_not_answer_is_a_protocol_error() -> None:
    async def silent(scope: Any, receive: Any, send: Any) -> None:
        pass

    async with in_process_transport(silent) as transport, client_of(transport) as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.get("/")


async def test_the_lifespan_of_the_app_lasts_as_long_as_the_transport() -> None:
    told: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            told.append((await receive())["type"])
            await send({"type": "lifespan.startup.complete"})
            told.append((await receive())["type"])
            await send({"type": "lifespan.shutdown.complete"})

    async with in_process_transport(app):
        assert told == ["lifespan.startup"]
    assert told == ["lifespan.startup", "lifespan.shutdown"]


async def test_an_app_that_cannot_start_says_why() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "The disk is full."})

    with pytest.raises(RuntimeError, match="The disk is full"):
        async with in_process_transport(app):
            raise AssertionError("unreachable")


async def test_an_error_of_whoever_uses_it_is_raised_as_it_is() -> None:
    with pytest.raises(LookupError, match="not in a group"):
        async with in_process_transport(an_app()):
            raise LookupError("not in a group")
