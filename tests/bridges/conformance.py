"""What every adapter must do, whatever the service. The tests of an adapter subclass this and give a `service` fixture:
the other side, with people who write there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
from sqlalchemy import update
from structlog.testing import capture_logs

from denizen import failpoints
from denizen.bridges.port import (
    Adapter,
    Batch,
    BridgeKind,
    Incoming,
    IncomingFile,
    IncomingMessage,
    Later,
    Outcome,
    Refused,
)
from denizen.bridges.receiving import RECEIVED, Origin, Receiver
from denizen.bridges.registry import Bridge, state_of
from denizen.bridges.running import BEGUN, SENT, BridgeRunner
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import channels
from tests.world import World

ROOM = "pier"
STEPS_IN = (RECEIVED, "commit:take_in", "committed:take_in")
STEPS_OUT = (
    "commit:begin_sending",
    "committed:begin_sending",
    BEGUN,
    SENT,
    "commit:end_sending",
    "committed:end_sending",
)


class Killed(Exception):
    """The process dies, as far as the bridge is concerned."""


def kill_once_at(point: str) -> None:
    def kill() -> None:
        failpoints.disarm(point)
        raise Killed

    failpoints.arm(point, kill)


class Service(Protocol):
    """The other side."""

    said: list[str]
    """What arrived there, in order: `room: Author: text`."""
    answers: list[Outcome]
    """What it answers next, instead of taking it."""

    sends_once: bool
    """Whether what is sent again after a process died is there once."""
    tells_deletions: bool
    """Whether the service tells of messages that were deleted there."""
    first_cursor: str
    """From where a room is read from its beginning."""

    @property
    def kind(self) -> BridgeKind: ...
    def room_id(self, name: str) -> str:
        """The id of the room with this name, which is there then."""
        ...

    async def settle(self) -> None:
        """Have what arrived in `said`."""
        ...

    async def attach(self, world: World) -> Bridge: ...
    async def close(self) -> None: ...
    def forbid(self) -> None: ...
    def permit(self) -> None: ...
    async def write(
        self, room: str, who: str, text: str, *, bot: bool = False, verified: bool = True, **more: Any
    ) -> str: ...
    async def edit(self, room: str, who: str, of: str, text: str) -> None: ...
    async def delete(self, room: str, who: str, of: str) -> None: ...
    async def react(self, room: str, who: str, of: str, emoji: str, *, removed: bool = False) -> str: ...


class Pier:
    """A space of Noor's, connected with a room of the service."""

    def __init__(self, world: World, service: Service, bridge: Bridge, noor: Entity, space: Space) -> None:
        self.world, self.service, self.bridge, self.noor, self.space = world, service, bridge, noor, space

    async def run(self) -> None:
        await self.world.run()
        await self.service.settle()

    async def run_after(self, seconds: float) -> None:
        await self.world.run_after(seconds)
        await self.service.settle()

    async def lines(self) -> list[str]:
        """What is said in the space, without notices and what it began with."""
        found = (await self.world.denizen.spaces.messages(self.space))[1:]
        return [f"{each.author_name}: {each.text}" for each in found if "notice" not in each.metadata]

    async def notices(self) -> list[str]:
        found = (await self.world.denizen.spaces.messages(self.space))[1:]
        return [each.text for each in found if "notice" in each.metadata]

    async def say(self, text: str, **options: Any) -> Any:
        return await self.world.say(self.noor, text, self.space, **options)


async def build(world: World, service: Service, *members: Any) -> Pier:
    noor = await world.person("Noor")
    space = await world.space("Pier", noor, *members)
    bridge = await service.attach(world)
    await world.denizen.bridges.connect(bridge, space, service.room_id(ROOM))
    await world.run()
    return Pier(world, service, bridge, noor, space)


def _read_again(tx: Tx, cursor: str) -> None:
    tx.run(statement(update(channels).values(cursor=cursor)))


class Defects:
    """Defects in the adapters of a test, while it sets them."""

    def __init__(self) -> None:
        self.reading: Exception | None = None
        self.hearing: Exception | None = None
        self.times_read = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        keep_carrying = BridgeRunner._keep_carrying  # pyright: ignore[reportPrivateUsage]

        async def keep_carrying_with_defects(runner: BridgeRunner, carrier: Any, adapter: Adapter) -> None:
            await keep_carrying(runner, carrier, _DefectiveAdapter(adapter, self))

        monkeypatch.setattr(BridgeRunner, "_keep_carrying", keep_carrying_with_defects)


class _DefectiveAdapter:
    """An adapter with these defects, otherwise as it is."""

    def __init__(self, adapter: Adapter, defects: Defects) -> None:
        self._adapter, self._defects = adapter, defects

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)

    async def read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        self._defects.times_read += 1
        if self._defects.reading is not None:
            raise self._defects.reading
        return await self._adapter.read(rooms)

    async def news(self) -> None:
        if self._defects.hearing is not None:
            raise self._defects.hearing
        await self._adapter.news()

    async def send(self, what: Any) -> Outcome:
        return await self._adapter.send(what)

    async def close(self) -> None:
        await self._adapter.close()


def refuse_by_a_defect(monkeypatch: pytest.MonkeyPatch, word: str) -> list[str]:
    """Taking in a message ends in a defect as long as the list that is returned has its word."""
    receive, words = Receiver.receive, [word]

    async def receive_with_defects(receiver: Receiver, origin: Origin, event: Incoming) -> None:
        if isinstance(event, IncomingMessage) and any(each in event.text for each in words):
            raise KeyError(event.text)
        await receive(receiver, origin, event)

    monkeypatch.setattr(Receiver, "receive", receive_with_defects)
    return words


class BridgeSuite:
    @pytest.fixture
    def service(self) -> Service:
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    async def no_failpoints(self) -> AsyncIterator[None]:
        yield
        failpoints.disarm()

    async def build(self, bay: World, service: Service) -> Pier:
        return await build(bay, service)

    async def test_what_is_written_there_is_said_here_once(self, bay: World, service: Service) -> None:
        """Also when the service tells of it again, and after a restart."""
        pier = await self.build(bay, service)
        await service.write(ROOM, "Eve", "Ahoy!")
        await service.write(ROOM, "Eve", "Anyone there?")
        await pier.run()
        await bay.denizen.db.write(_read_again, service.first_cursor)
        await bay.restart()
        await pier.run()
        assert await pier.lines() == ["Eve: Ahoy!", "Eve: Anyone there?"]
        assert service.said == []

    async def test_what_is_said_here_is_written_there_in_order(self, bay: World, service: Service) -> None:
        pier = await self.build(bay, service)
        for number in range(5):
            await pier.say(f"Number {number}")
        await pier.run()
        await pier.run()
        assert service.said == [f"{ROOM}: Noor: Number {number}" for number in range(5)]

    async def test_changes_there_are_changes_here(self, bay: World, service: Service) -> None:
        """An edit, a deletion, a reply, a file and a reaction stay what they are."""
        pier = await self.build(bay, service)
        first = await service.write(ROOM, "Eve", "Ahoi")
        second = await service.write(ROOM, "Eve", "Wrong room")
        await service.write(ROOM, "Mia", "Hello Eve", reply_to=first)
        await service.write(ROOM, "Mia", "A map", files=(IncomingFile("map.txt", "text/plain", b"north"),))
        await pier.run()
        await service.edit(ROOM, "Eve", first, "Ahoy")
        await service.edit(ROOM, "Mia", second, "Not Mia's to change")
        if service.tells_deletions:
            await service.delete(ROOM, "Eve", second)
        await service.react(ROOM, "Mia", first, "👍")
        await service.react(ROOM, "Mia", first, "🎉")
        await service.react(ROOM, "Mia", first, "🎉", removed=True)
        await pier.run()
        _, eve, wrong, mia, sent = await bay.denizen.spaces.messages(pier.space)
        gone = "[deleted]" if service.tells_deletions else "Wrong room"
        assert [eve.text, wrong.text, mia.text, sent.text] == ["Ahoy", gone, "Hello Eve", "A map"]
        assert mia.reply_to == eve.id
        assert eve.reactions == {"👍": [mia.author_id]}
        assert [await bay.denizen.files.read(each.id) for each in sent.files] == [b"north"]
        assert service.said == []

    async def test_changes_here_are_changes_there(self, bay: World, service: Service, tmp_path: Path) -> None:
        pier = await self.build(bay, service)
        spaces = bay.denizen.spaces
        first = await pier.say("Ahoi")
        (tmp_path / "map.txt").write_text("north")
        await pier.say("A map", files=[tmp_path / "map.txt"])
        await pier.run()
        await spaces.edit_message(first.id, "Ahoy", by=pier.noor)
        await spaces.react(first.id, "👍", by=pier.noor)
        await pier.run()
        await spaces.react(first.id, "👍", by=pier.noor, remove=True)
        await pier.say("So be it", reply_to=first.id)
        await pier.run()
        await spaces.delete_message(first.id, by=pier.noor)
        await pier.run()
        assert service.said == [
            f"{ROOM}: Noor: Ahoi",
            f"{ROOM}: Noor: A map [map.txt: north]",
            f"{ROOM}: edit (out-1): Ahoy",
            f"{ROOM}: react 👍 (out-1)",
            f"{ROOM}: unreact 👍 (out-4)",
            f"{ROOM}: Noor: So be it (to out-1)",
            f"{ROOM}: delete (out-1)",
        ]

    async def test_a_reply_and_a_reaction_to_what_was_written_there_find_it(self, bay: World, service: Service) -> None:
        pier = await self.build(bay, service)
        id = await service.write(ROOM, "Eve", "Ahoy")
        await pier.run()
        eve = (await bay.denizen.spaces.messages(pier.space))[-1]
        await pier.say("Hello", reply_to=eve.id)
        await bay.denizen.spaces.react(eve.id, "👍", by=pier.noor)
        await pier.run()
        assert service.said == [f"{ROOM}: Noor: Hello (to {id})", f"{ROOM}: react 👍 ({id})"]

    async def test_a_service_that_asks_for_patience_gets_it_and_order_stays(self, bay: World, service: Service) -> None:
        pier = await self.build(bay, service)
        service.answers.append(Later("Come back later.", 40))
        await pier.say("One")
        await pier.say("Two")
        await pier.run()
        assert service.said == []
        report = await bay.denizen.bridges.get(pier.bridge)
        assert report.backlog.waiting == 2
        assert report.bridge.error
        await pier.run_after(39)
        assert service.said == []
        await pier.run_after(2)
        assert service.said == [f"{ROOM}: Noor: One", f"{ROOM}: Noor: Two"]
        report = await bay.denizen.bridges.get(pier.bridge)
        assert (report.bridge.error, report.backlog.waiting) == (None, 0)

    async def test_a_refused_message_holds_up_nothing_and_is_told(self, bay: World, service: Service) -> None:
        pier = await self.build(bay, service)
        service.answers.append(Refused("It is too large."))
        await pier.say("One")
        await pier.say("Two")
        await pier.run()
        assert service.said == [f"{ROOM}: Noor: Two"]
        (notice,) = await pier.notices()
        assert "could not deliver a message" in notice
        assert (await bay.denizen.bridges.get(pier.bridge)).backlog.failed == 1
        await bay.denizen.bridges.retry(pier.bridge)
        await pier.run()
        assert service.said == [f"{ROOM}: Noor: Two", f"{ROOM}: Noor: One"]

    async def test_a_revoked_bridge_waits_and_says_so_once(self, bay: World, service: Service) -> None:
        pier = await self.build(bay, service)
        service.forbid()
        await pier.say("One")
        await pier.run()
        await pier.say("Two")
        await pier.run()
        (notice,) = await pier.notices()
        assert "is disconnected" in notice
        assert (await bay.denizen.bridges.get(pier.bridge)).bridge.parked_reason
        service.permit()
        await bay.denizen.bridges.retry(pier.bridge)
        await pier.run()
        assert service.said == [f"{ROOM}: Noor: One", f"{ROOM}: Noor: Two"]
        assert (await bay.denizen.bridges.get(pier.bridge)).bridge.parked_reason is None

    async def test_what_was_deleted_before_it_was_sent_goes_nowhere(self, bay: World, service: Service) -> None:
        pier = await self.build(bay, service)
        posted = await pier.say("A secret")
        await bay.denizen.spaces.forget_message(posted.id)
        await pier.say("Hello")
        await pier.run()
        assert service.said == [f"{ROOM}: Noor: Hello"]

    async def test_a_defect_in_reading_is_put_off_told_once_and_holds_up_no_sending(
        self, bay: World, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The log has it once, however often it is met; what was written meanwhile is read when it is mended."""
        defects = Defects()
        defects.install(monkeypatch)
        pier = await self.build(bay, service)
        defects.reading, before = KeyError("ok"), defects.times_read
        with capture_logs() as logs:
            async with bay.denizen.living():
                await service.write(ROOM, "Eve", "Ahoy!")
                for seconds in (0, 29, 2, 30, 31, 60, 61):
                    await pier.run_after(seconds)
                # After 30, 60 and 120 seconds, whatever is hinted meanwhile.
                assert defects.times_read == before + 4
                await pier.say("Are you there?")
                await pier.run()
                assert service.said == [f"{ROOM}: Noor: Are you there?"]
                bridge = (await bay.denizen.bridges.get(pier.bridge)).bridge
                assert state_of(bridge, bay.clock.now()) == "failing"
                assert "while the bridge was reading" in (bridge.error or "")
                defects.reading = None
                await pier.run_after(300)
                await pier.run()
        assert "Eve: Ahoy!" in await pier.lines()
        assert (await bay.denizen.bridges.get(pier.bridge)).bridge.error is None
        (front, *_) = await bay.denizen.spaces.list(bridge.entity_id)
        told = [each.text for each in await bay.denizen.spaces.messages(front) if "is written there" in each.text]
        assert [each.split()[1:3] for each in told] == [["cannot", "read"], ["can", "read"]]
        assert [each["event"] for each in logs if "defect" in each["event"]] == ["bridge not read, by a defect"]

    async def test_a_defect_in_taking_in_an_event_loses_nothing(self, bay: World, service: Service) -> None:
        """It and what follows in its room come when the defect has passed: once, in order."""
        pier = await self.build(bay, service)
        async with bay.denizen.living():
            await pier.run()
            await service.write(ROOM, "Eve", "Before")
            await pier.run()
            kill_once_at(RECEIVED)
            await service.write(ROOM, "Eve", "One")
            await pier.run()
            assert not failpoints.armed
            await service.write(ROOM, "Eve", "Two")
            await pier.run()
            await pier.run_after(300)
            await service.write(ROOM, "Eve", "Three")
            await pier.run()
        assert await pier.lines() == [f"Eve: {each}" for each in ("Before", "One", "Two", "Three")]

    async def test_a_defect_in_hearing_of_news_is_logged_once_and_rooms_are_read(
        self, bay: World, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        defects = Defects()
        defects.install(monkeypatch)
        pier = await self.build(bay, service)
        defects.hearing = KeyError("ok")
        with capture_logs() as logs:
            async with bay.denizen.living():
                await service.write(ROOM, "Eve", "Ahoy!")
                for _ in range(3):
                    await pier.run_after(60)
        assert await pier.lines() == ["Eve: Ahoy!"]
        assert len([each for each in logs if "defect" in each["event"]]) == 1

    async def test_killed_at_each_step_of_sending_nothing_is_lost(self, bay: World, service: Service) -> None:
        """It is there once where the service can tell; elsewhere one message may be there twice. Order stays."""
        pier = await self.build(bay, service)
        wanted: list[str] = []
        for step in STEPS_OUT:
            for number in (1, 2):
                await pier.say(f"{step} {number}")
                wanted.append(f"{ROOM}: Noor: {step} {number}")
            kill_once_at(step)
            await pier.run()
            assert not failpoints.armed, f"{step} was never passed"
            await bay.restart()
            await pier.run_after(3600)
        assert list(dict.fromkeys(service.said)) == wanted
        assert len(service.said) == len(wanted) if service.sends_once else len(service.said) <= len(wanted) + 2
        assert (await bay.denizen.bridges.get(pier.bridge)).backlog.waiting == 0

    async def test_killed_at_each_step_of_receiving_it_is_said_once(self, bay: World, service: Service) -> None:
        pier = await self.build(bay, service)
        wanted: list[str] = []
        for step in STEPS_IN:
            kill_once_at(step)
            for number in (1, 2):
                await service.write(ROOM, "Eve", f"{step} {number}")
                wanted.append(f"Eve: {step} {number}")
            await pier.run()
            assert not failpoints.armed, f"{step} was never passed"
            await bay.restart()
            await pier.run()
        assert await pier.lines() == wanted
