"""People who ask, ask again until they are heard, and read along: the clients whose word counts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

import aiohttp

from lab.elsewhere import message_elsewhere, signed_by_program, signed_by_service
from lab.history import History, Line
from lab.instances import Instance
from lab.model import question

if TYPE_CHECKING:
    from lab.setting import Door

ANSWER_SECONDS: Final = 15
"""After which a client takes a request to be lost, and asks another instance."""
PAUSE_SECONDS: Final = 0.05


class Person:
    """One token, several spaces. Everything that it sees is in the history."""

    def __init__(self, history: History, instances: Sequence[Instance], token: str, panel: str = "") -> None:
        self.history = history
        self.instances = list(instances)
        self.answered: dict[int, float] = {}
        """When the answer to each question came by the stream."""
        self.rung: set[int] = set()
        """The questions whose timer has fired."""
        self.statuses: dict[str, list[Line]] = {}
        self.reads = False
        """Whether its stream has begun: from then on it misses nothing."""
        self.changed = asyncio.Condition()
        self.panel = panel
        self._numbers = count(1)
        self._turn = 0
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {token}"}, timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        )

    async def close(self) -> None:
        await self._session.close()

    async def sees(self, is_so: Callable[[], bool]) -> None:
        """Wait until it is so: asked again whenever something comes by the stream."""
        async with self.changed:
            await self.changed.wait_for(is_so)

    # Asking

    async def ask(self, space: str, agent: str, kind: str, trial: int) -> int:
        """The question is acknowledged. It is asked again, under the same key, until it is."""
        number = next(self._numbers)
        self.history.add("asking", number=number, space=space, agent=agent, kind=kind, trial=trial)
        body = {"text": question(number, agent, space, kind)}
        while True:
            instance = self._next()
            answer = await self._request(
                "POST", instance, f"/api/spaces/{space}/messages", json=body, headers={"Idempotency-Key": f"q{number}"}
            )
            if answer is not None and answer[0] == 201:
                self.history.add("acknowledged", number=number, seq=answer[1]["seq"], id=answer[1]["id"])
                return number
            if answer is not None and answer[0] < 500 and answer[0] != 429:
                self.history.add("refused", number=number, status=answer[0], said=str(answer[1])[:500])
            await asyncio.sleep(PAUSE_SECONDS)

    async def ask_from_outside(
        self, door: Door, space: str, agent: str, kind: Literal["hook", "guest"], trial: int
    ) -> int:
        """The same, by a service that calls a webhook, or by somebody who writes in a room elsewhere."""
        number = next(self._numbers)
        self.history.add("asking", number=number, space=space, agent=agent, kind=kind, trial=trial)
        text = question(number, agent, space, kind)
        body = json.dumps({"said": text}).encode() if kind == "hook" else message_elsewhere(number, text)
        sign = signed_by_service if kind == "hook" else signed_by_program
        while True:
            how = {"data": body, "headers": sign(door.secret, body)}
            answer = await self._request("POST", self._next(), door.path, **how)
            if answer is not None and answer[0] == 200:
                self.history.add("acknowledged", number=number)
                return number
            if answer is not None and answer[0] < 500 and answer[0] != 429:
                self.history.add("refused", number=number, status=answer[0], said=str(answer[1])[:500])
            await asyncio.sleep(PAUSE_SECONDS)

    async def get(self, path: str) -> Any:
        """What an instance says to that, whichever answers first."""
        while True:
            answer = await self._request("GET", self._next(), path)
            if answer is not None and answer[0] == 200:
                return answer[1]
            await asyncio.sleep(PAUSE_SECONDS)

    async def ready(self, instance: Instance, seconds: float = 5) -> tuple[int, list[str]]:
        """What `/readyz` of that instance says: the status, and what is missing. 0: no answer."""
        answer = await self._request("GET", instance, "/readyz", timeout=aiohttp.ClientTimeout(total=seconds))
        return (0, []) if answer is None else (answer[0], answer[1].get("missing", []))

    def _next(self) -> Instance:
        self._turn += 1
        return self.instances[self._turn % len(self.instances)]

    async def _request(self, method: str, instance: Instance, path: str, **how: Any) -> tuple[int, Any] | None:
        try:
            async with self._session.request(method, instance.url + path, **how) as answer:
                return answer.status, json.loads(await answer.read() or b"null")
        except (aiohttp.ClientError, TimeoutError, OSError, json.JSONDecodeError):
            return None

    # Reading

    async def listen(self) -> None:
        """Read the stream, from another instance whenever one ends, for ever."""
        last = ""
        for connection in count(1):
            instance = self._next()
            headers = {"Last-Event-ID": last} if last else {}
            try:
                async with self._session.get(
                    instance.url + "/api/stream",
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=ANSWER_SECONDS, sock_read=20),
                ) as answer:
                    if answer.status == 200:
                        async for name, identifier, data in _events(answer):
                            last = identifier or last
                            await self._hear(name, data, connection)
            except (aiohttp.ClientError, TimeoutError, OSError):
                pass
            await asyncio.sleep(PAUSE_SECONDS)

    async def _hear(self, name: str, data: Line, connection: int) -> None:
        if name == "message":
            kind, text = data["author"]["kind"], data["text"]
            line = self.history.add(
                "message",
                space=data["space_id"],
                seq=data["seq"],
                id=data["id"],
                kind=kind,
                text=text,
                connection=connection,
            )
            self._count(kind, text, line["at"])
        elif name == "panel.round" and data["all_completed"] and data["message"] is not None:
            line = self.history.add("round", panel=data["panel"], id=data["id"])
            self.answered.setdefault(number_of(data["message"]["text"]), line["at"])
        elif name == "ready":
            self.reads = True
            await self._read_rounds()
        elif name == "space.statuses":
            self.statuses[data["space"]] = data["statuses"]
            shown = [[each["name"], each["cause"], each["text"]] for each in data["statuses"]]
            self.history.add("statuses", space=data["space"], statuses=shown)
        else:
            return
        async with self.changed:
            self.changed.notify_all()

    def _count(self, kind: str, text: str, at: float) -> None:
        if kind == "agent" and text.startswith("re #"):
            self.answered.setdefault(int(text[4 : text.index(":")]), at)
        elif kind == "agent" and text.startswith("rung #"):
            self.rung.add(int(text[6:]))

    async def _read_rounds(self) -> None:
        """A stream tells only those who are connected that a round is complete; whoever was away has to look."""
        for each in await self.rounds(self.panel) if self.panel else ():
            if all(state == "done" for state, _ in each["replies"]):
                self.answered.setdefault(each["number"], self.history.now())

    async def rounds(self, panel: str) -> list[Line]:
        """Every round of the panel: whose question it answers, and what each advisor said to it."""
        found: list[Line] = []
        before = ""
        while True:
            page = await self.get(f"/api/panels/{panel}/rounds{before}")
            found += page["rounds"]
            if page["next"] is None:
                break
            before = f"?before={page['next']}"
        return [
            {
                "number": number_of(each["message"]["text"]),
                "replies": [[r["state"], r["content"]] for r in each["advisor_responses"].values()],
            }
            for each in found
        ]

    async def read_anew(self, spaces: Iterable[str]) -> None:
        """Only what is there now counts as answered."""
        self.answered, self.rung, self.statuses = {}, set(), {}
        for space in spaces:
            for each in await self.transcript(space):
                self._count(each["kind"], each["text"], self.history.now())
        await self._read_rounds()

    def is_told(self, space: str, agent: str) -> bool:
        """Whether the space says why this agent has not answered."""
        return any(each["name"].lower() == agent and each["cause"] != "queued" for each in self.statuses.get(space, ()))

    async def transcript(self, space: str) -> list[Line]:
        """Every message of the space, page by page."""
        found: list[Line] = []
        after: int | None = 0
        while after is not None:
            page = await self.get(f"/api/spaces/{space}/messages?after={after}&limit=200")
            found += page["messages"]
            after = page["next"]
        return [
            {"space": space, "seq": m["seq"], "id": m["id"], "kind": m["author"]["kind"], "text": m["text"]}
            for m in found
        ]


def number_of(text: str) -> int:
    """The number of the question in this text."""
    return int(text.partition("#")[2].partition(" ")[0])


async def _events(answer: aiohttp.ClientResponse) -> AsyncGenerator[tuple[str, str, Any]]:
    """Server-sent events: name, id, data."""
    name, identifier, data = "", "", ""
    async for raw in answer.content:
        line = raw.decode().rstrip("\n")
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "id":
            identifier = value
        elif field == "data":
            data = value
        elif not line and data:
            yield name, identifier, json.loads(data)
            name, identifier, data = "", "", ""
