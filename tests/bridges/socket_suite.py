"""What an adapter with a socket must do besides: nothing is lost or there twice when connections or processes end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from denizen import failpoints
from denizen.bridges.port import IncomingFile
from denizen.bridges.receiving import RECEIVED
from tests.bridges.conformance import ROOM, BridgeSuite, Service, build, kill_once_at
from tests.bridges.sockets import SocketStandIn
from tests.bridges.status_suite import StatusSuite
from tests.world import World


class SocketSuite(StatusSuite, BridgeSuite):
    @pytest.fixture
    def socket(self, service: Service) -> SocketStandIn:
        assert isinstance(service, SocketStandIn)
        return service

    async def test_a_reply_that_is_lost_does_not_send_twice(
        self, bay: World, service: Service, socket: SocketStandIn, tmp_path: Path
    ) -> None:
        """Also for an answer to a message there, and for a file."""
        pier = await build(bay, service)
        asked = await service.write(ROOM, "Eve", "Where?")
        await pier.run()
        eve = (await bay.denizen.spaces.messages(pier.space))[-1]
        (tmp_path / "map.txt").write_text("north")
        for options in ({}, {"reply_to": eve.id}):
            socket.lose_replies = 1
            await pier.say("Here", **options)
            await pier.run()
            assert socket.lose_replies == 0
            await pier.run_after(400)
        socket.lose_replies = 1
        await pier.say("A map", files=[tmp_path / "map.txt"])
        await pier.run()
        await pier.run_after(400)
        assert service.said == [
            f"{ROOM}: Noor: Here",
            f"{ROOM}: Noor: Here (to {asked})",
            f"{ROOM}: Noor: A map [map.txt: north]",
        ]
        assert (await bay.denizen.bridges.get(pier.bridge)).backlog.waiting == 0

    async def test_what_comes_by_the_socket_while_a_room_waits_is_kept(self, bay: World, service: Service) -> None:
        """Changes, too, of which a history does not tell; and another room is read meanwhile."""
        pier = await build(bay, service)
        dock = await bay.space("Dock", pier.noor)
        await bay.denizen.bridges.connect(pier.bridge, dock, service.room_id("mole"))
        async with bay.denizen.living():
            await pier.run()
            first = await service.write(ROOM, "Eve", "One")
            await pier.run()
            kill_once_at(RECEIVED)
            await service.edit(ROOM, "Eve", first, "Uno")
            await pier.run()
            assert not failpoints.armed
            await service.react(ROOM, "Mia", first, "👍")
            await service.write(ROOM, "Eve", "Two")
            await service.write("mole", "Mia", "Ahoy")
            await pier.run()
            assert await pier.lines() == ["Eve: One"]
            assert (await bay.denizen.spaces.messages(dock))[-1].text == "Ahoy"
            await pier.run_after(300)
            await pier.run()
        assert await pier.lines() == ["Eve: Uno", "Eve: Two"]
        said = await bay.denizen.spaces.messages(pier.space)
        assert [list(each.reactions) for each in said if each.text == "Uno"] == [["👍"]]

    async def test_an_edit_is_not_lost_when_the_process_is_killed(self, bay: World, service: Service) -> None:
        pier = await build(bay, service)
        first = await service.write(ROOM, "Eve", "One")
        await service.write(ROOM, "Eve", "Two")
        await pier.run()
        await service.edit(ROOM, "Eve", first, "Uno")
        kill_once_at(RECEIVED)
        await pier.run()
        await bay.restart()
        await pier.run()
        assert await pier.lines() == ["Eve: Uno", "Eve: Two"]

    async def test_what_was_written_while_the_server_was_away_is_read_as_history(
        self, bay: World, service: Service, socket: SocketStandIn
    ) -> None:
        """Also more than one page of it, and edits of what came before; nobody is woken by what is old."""
        ada = await bay.agent("Ada")
        pier = await build(bay, service)
        before = await service.write(ROOM, "Mia", "Ahoi")
        await pier.run()
        await bay.denizen.spaces.join(pier.space, ada)
        socket.forget_events()
        for number in range(8):
            await service.write(ROOM, "Eve", f"@ada number {number}?")
        await service.edit(ROOM, "Mia", before, "Ahoy")
        socket.forget_events()
        await pier.run_after(400_000_000)
        assert await pier.lines() == ["Mia: Ahoy", *[f"Eve: @ada number {number}?" for number in range(8)]]
        assert service.said == []
        assert await bay.cycles(ada) == []

    async def test_a_connection_that_ended_is_made_anew_and_nothing_is_lost(
        self, bay: World, service: Service, socket: SocketStandIn
    ) -> None:
        pier = await build(bay, service)
        async with bay.denizen.living():
            await service.write(ROOM, "Eve", "One")
            await bay.run()
            before = socket.connections
            await socket.hang_up()
            await service.write(ROOM, "Eve", "Two")
            await bay.run()
            assert socket.connections == before + 1
            await service.write(ROOM, "Eve", "Three")
            await pier.say("Four")
            await bay.run()
        assert [each for each in await pier.lines() if each.startswith("Eve")] == ["Eve: One", "Eve: Two", "Eve: Three"]
        assert service.said == [f"{ROOM}: Noor: Four"]

    async def test_what_the_socket_tells_is_read_at_once(
        self, bay: World, service: Service, socket: SocketStandIn
    ) -> None:
        """Nobody waits for the next look."""
        pier = await build(bay, service)
        async with bay.denizen.living(), asyncio.timeout(30):
            await bay.run()
            await service.write(ROOM, "Eve", "Ahoy!")
            while await pier.lines() != ["Eve: Ahoy!"]:  # noqa: ASYNC110  the database says it
                await asyncio.sleep(0)

    async def test_a_room_that_cannot_be_read_holds_up_no_other(self, bay: World, service: Service) -> None:
        pier = await build(bay, service)
        gone = await bay.space("Gone", pier.noor)
        await bay.denizen.bridges.connect(pier.bridge, gone, "4711")
        await service.write(ROOM, "Eve", "Ahoy!")
        await pier.run()
        assert await pier.lines() == ["Eve: Ahoy!"]
        report = await bay.denizen.bridges.get(pier.bridge)
        assert "4711 cannot be read" in (report.bridge.error or "")
        assert report.bridge.parked_reason is None

    async def test_a_bot_there_counts_as_an_agent(self, bay: World, service: Service) -> None:
        pier = await build(bay, service)
        await service.write(ROOM, "Robo", "I am a bot.", bot=True)
        await pier.run()
        assert (await bay.denizen.spaces.messages(pier.space))[-1].author_kind == "service"

    async def test_files_that_cannot_be_read_are_told_of(self, bay: World, service: Service) -> None:
        pier = await build(bay, service)
        await service.write(ROOM, "Eve", "Look", files=(IncomingFile("gone.txt", "text/plain", b""),))
        socket = service
        assert isinstance(socket, SocketStandIn)
        socket.forget_files()
        await pier.run()
        (line,) = await pier.lines()
        assert line.startswith("Eve: Look")
        assert "[A file is missing:" in line
