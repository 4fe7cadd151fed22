"""A Denizen server from outside: its REST API and its streams, typed. It needs nothing of a running Denizen but a URL.

A stream goes on for ever: when the connection is lost it says so, tries again, and resumes after the last message it
gave, so that every message comes once and in order. What cannot get better by trying again is raised.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, TypeVar
from urllib.parse import quote

import httpx2
from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from denizen.clock import Clock, SystemClock
from denizen.errors import InvalidInput, RequestRefused, ServerError, ServerUnreachable, TokenRefused

REQUEST_SECONDS: Final = 20.0
SILENT_SECONDS: Final = 45.0
"""A stream that says nothing for so long is dead: the server shows every 15 seconds that it is not."""
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 10.0
_BUSY: Final = (429, 502, 503, 504)
"""Statuses of a server, or of what stands before it, that will answer later."""


class _Value(BaseModel):
    """What the server tells. Fields that we do not know are left out: a newer server may tell more."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Me(_Value):
    """Who the token stands for."""

    id: str
    handle: str
    name: str


class Member(_Value):
    """Someone in a space."""

    id: str
    kind: str
    handle: str
    name: str
    attention: str = "all"


class Space(_Value):
    """A space one is in."""

    id: str
    name: str
    private: bool
    last_seq: int
    members: tuple[Member, ...]


class Agent(_Value):
    """An agent of one's organization."""

    id: str
    handle: str
    name: str
    status: str
    model: str
    about: str


class Author(_Value):
    """Who said something."""

    id: str
    kind: str
    name: str


class Message(_Value):
    """Something said in a space; `seq` is its place there."""

    id: str
    space_id: str
    seq: int
    author: Author
    text: str
    mentions: tuple[str, ...] = ()
    reply_to: str | None = None
    created_at: datetime


class Call(_Value):
    """A tool call of an agent that people see. Those of mode `pause` and `async` they may answer."""

    id: str
    agent_id: str
    space_id: str | None
    after_seq: int = 0
    """The number of the message behind which it stands."""
    tool: str
    mode: str
    state: str
    """`waiting`, until it is answered, interrupted, expired or cancelled; `late`: answered after that."""
    arguments: JsonValue = None
    result: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    settled_at: datetime | None = None
    settled_by: str | None = None


class Health(_Value):
    """The server answers."""

    ok: bool
    version: str


@dataclass(frozen=True, slots=True)
class Connected:
    """From here on the stream is live."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection is gone; what was being written when it broke may never be finished. It is tried again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Started:
    """An agent begins to write the message of this id. Its text is heard from `offset` on; starting again is anew."""

    id: str
    agent_id: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Delta:
    """More of its text, which begins `offset` characters into it."""

    id: str
    agent_id: str
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Aborted:
    """It will not become a message."""

    id: str
    agent_id: str


@dataclass(frozen=True, slots=True)
class Status:
    """How an agent is from now on: sleeping, alive, paused, suspended, dead."""

    agent_id: str
    status: str
    doing: str | None = None
    """The tool that it is using."""


Frame: TypeAlias = Started | Delta | Aborted | Status
StreamEvent: TypeAlias = Message | Call | Frame | Connected | Lost


def frame_from(payload: Mapping[str, JsonValue]) -> Frame | None:
    """The frame that a payload of the stream says, or None if it says none that we know."""
    match payload:
        case {"type": "stream.started", "id": str(id_), "agent": str(agent), **rest}:
            offset = rest.get("offset", 0)
            return Started(id_, agent, offset if isinstance(offset, int) else 0)
        case {"type": "stream.delta", "id": str(id_), "agent": str(agent), "offset": int(offset), "text": str(text)}:
            return Delta(id_, agent, offset, text)
        case {"type": "stream.aborted", "id": str(id_), "agent": str(agent)}:
            return Aborted(id_, agent)
        case {"type": "agent.status", "agent": str(agent), "status": str(status), **rest}:
            doing = rest.get("doing")
            return Status(agent, status, doing if isinstance(doing, str) else None)
        case _:
            return None


_Told = TypeVar("_Told", bound=BaseModel)


class _Spaces(_Value):
    spaces: list[Space]
    next: str | None = None


class _Agents(_Value):
    agents: list[Agent]
    next: str | None = None


class _Page(_Value):
    messages: list[Message]


class _Calls(_Value):
    calls: list[Call]


class _Problem(_Value):
    code: str = ""
    detail: str = ""


_payload: Final[TypeAdapter[dict[str, JsonValue]]] = TypeAdapter(dict[str, JsonValue])


class Client:
    """One person's way to one server. Use it as `async with Client(url, token) as denizen`."""

    def __init__(self, url: str, token: str, *, clock: Clock | None = None) -> None:
        self.url = _checked(url)
        self._clock = clock or SystemClock()
        headers = {"Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if not token.isascii() or not token.isprintable():
            raise InvalidInput("The access token has characters that no token has: copy it again.")
        # Proxies of the environment are for the world outside; a server of one's own is not there.
        self._http = httpx2.AsyncClient(
            base_url=self.url, headers=headers, timeout=REQUEST_SECONDS, trust_env=False, follow_redirects=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def health(self) -> Health:
        """That there is a Denizen, and which. Needs no token."""
        return await self._ask(Health, "GET", "/healthz")

    async def me(self) -> Me:
        return await self._ask(Me, "GET", "/api/me")

    async def spaces(self) -> list[Space]:
        """The spaces one is in, with their members."""
        found: list[Space] = []
        after: dict[str, str] = {}
        while True:
            page = await self._ask(_Spaces, "GET", "/api/spaces", params=after)
            found += page.spaces
            if page.next is None:
                return found
            after = {"after": page.next}

    async def agents(self) -> list[Agent]:
        """Those of the organization that are not dead, by handle."""
        found: list[Agent] = []
        after: str | None = ""
        while after is not None:
            page = await self._ask(_Agents, "GET", "/api/agents", params={"after": after})
            found, after = found + page.agents, page.next
        return found

    async def messages(
        self, space_id: str, *, after: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[Message]:
        """Messages after a number, or the last ones before one, or the newest; the oldest of them first."""
        asked = {"after": after, "before": before, "limit": limit}
        given = {name: value for name, value in asked.items() if value is not None}
        return (await self._ask(_Page, "GET", f"{_path(space_id)}/messages", params=given)).messages

    async def post(self, space_id: str, text: str, *, key: str) -> Message:
        """The message stands in the space. Posting again with the same key is posting once."""
        return await self._ask(
            Message, "POST", f"{_path(space_id)}/messages", json={"text": text}, headers={"Idempotency-Key": key}
        )

    async def calls(self) -> list[Call]:
        """What agents ask and oneself may answer, the oldest first."""
        return (await self._ask(_Calls, "GET", "/api/calls")).calls

    async def call(self, call_id: str) -> Call:
        """A call as it stands."""
        return await self._ask(Call, "GET", f"/api/calls/{quote(call_id, safe='')}")

    async def answer(self, call_id: str, result: JsonValue) -> Call:
        """The call has this result, and its agent goes on with it. One that has an answer is refused another: 409."""
        return await self._ask(Call, "POST", f"/api/calls/{quote(call_id, safe='')}/answer", json={"result": result})

    async def stream(self, space_id: str, *, after: int) -> AsyncGenerator[StreamEvent]:
        """What is said after that number, and live what is being written and asked, for ever."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                async with aclosing(self._stream_once(space_id, after)) as events:
                    async for event in events:
                        pause = FIRST_PAUSE_SECONDS
                        if isinstance(event, Message):
                            after = event.seq
                        yield event
                reason = "The server ended the stream."
            except ServerUnreachable as error:
                reason = str(error)
            yield Lost(reason)
            await self._clock.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _stream_once(self, space_id: str, after: int) -> AsyncGenerator[StreamEvent]:
        """One connection's worth of events: it ends where the connection does, or where a message is missing."""
        request = self._http.stream(
            "GET",
            f"{_path(space_id)}/stream",
            headers={"Accept": "text/event-stream", "Last-Event-ID": str(after)},
            timeout=httpx2.Timeout(REQUEST_SECONDS, read=SILENT_SECONDS),
        )
        try:
            async with request as response:
                if response.status_code != 200:
                    await response.aread()
                    raise _refusal(response)
                yield Connected()
                async for event in _events(response):
                    if isinstance(event, Message):
                        if event.seq <= after:
                            continue
                        if event.seq > after + 1:
                            return
                        after = event.seq
                    yield event
        except httpx2.RequestError as error:
            raise self._unreachable(error) from error

    async def _ask(self, kind: type[_Told], method: str, path: str, **request: Any) -> _Told:
        try:
            response = await self._http.request(method, path, **request)
        except httpx2.RequestError as error:
            raise self._unreachable(error) from error
        if not response.is_success:
            raise _refusal(response)
        try:
            return kind.model_validate_json(response.content)
        except ValidationError as error:
            raise ServerError(f"What answers at {self.url} does not speak as a Denizen server does.") from error

    def _unreachable(self, error: httpx2.RequestError) -> ServerUnreachable:
        why = "It takes too long." if isinstance(error, httpx2.TimeoutException) else ""
        return ServerUnreachable(f"No Denizen server answers at {self.url}. {why}".strip())


async def _events(response: httpx2.Response) -> AsyncIterator[Message | Call | Frame]:
    async for sent in httpx2.EventSource(response):
        # An event without data is none: it only says when to try again.
        if sent.data and (event := _event(sent)) is not None:
            yield event


def _event(sent: httpx2.ServerSentEvent) -> Message | Call | Frame | None:
    try:
        if sent.event == "message":
            return Message.model_validate_json(sent.data)
        if sent.event == "call":
            return Call.model_validate_json(sent.data)
        return frame_from(_payload.validate_json(sent.data))
    except ValidationError as error:
        raise ServerError("The server sent an event that is none of Denizen's.") from error


def _refusal(response: httpx2.Response) -> ServerError:
    try:
        problem = _Problem.model_validate_json(response.content)
    except ValidationError:
        problem = _Problem()
    if response.status_code == 401:
        return TokenRefused(f"The server does not let us in: {problem.detail or 'the access token is not good.'}")
    said = problem.detail or f"The server answered with status {response.status_code}."
    if response.status_code in _BUSY:
        return ServerUnreachable(said)
    return RequestRefused(said, problem=problem.code, status=response.status_code)


def _path(space_id: str) -> str:
    return f"/api/spaces/{quote(space_id, safe='')}"


def _checked(url: str) -> str:
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise InvalidInput(f"{url!r} is no address of a server: write something like http://127.0.0.1:8420.") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput(f"{url!r} is no address of a server: write something like http://127.0.0.1:8420.")
    return url.rstrip("/")
