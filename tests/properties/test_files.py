"""Whatever is posted, sent on, deleted and forgotten: files are there as long as a message has them, and no longer."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from denizen.errors import NotFound
from denizen.files.cleanup import tidy
from denizen.ids import MessageId
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import chunks, contents
from tests.world import World, open_world

_CONTENTS = statement(select(contents.c.id, contents.c.organization_id, contents.c.digest, contents.c.dropped_at))
_CHUNKS = statement(select(chunks.c.content_id).distinct())
Op = tuple[str, int, int]
ops = st.lists(
    st.tuples(
        st.sampled_from(["post", "post", "send on", "agent sends on", "tool", "delete", "forget"]),
        st.integers(0, 5),
        st.integers(0, 2),
    ),
    min_size=2,
    max_size=9,
)


@dataclass
class Expected:
    """What a file of a message should be."""

    home: int
    message: MessageId
    author: str
    content: bytes
    id: str


@dataclass
class Town:
    """Two organizations, each with two people and an agent in two spaces, and a person outside of them."""

    world: World
    people: list[list[Entity]] = field(default_factory=list[list[Entity]])
    strangers: list[Entity] = field(default_factory=list[Entity])
    """One in each organization who is in no space."""
    agents: list[Entity] = field(default_factory=list[Entity])
    spaces: list[list[Space]] = field(default_factory=list[list[Space]])
    files: list[Expected] = field(default_factory=list[Expected])
    of_tools: list[Expected] = field(default_factory=list[Expected])

    async def found(self) -> None:
        for name in ("Home", "Elsewhere"):
            home = await self.world.denizen.organizations.create(name)
            people = [await self.world.person(f"{each} {name}", organization=home) for each in ("Noor", "Sam")]
            agent = await self.world.agent(f"Ada {name}", organization=home)
            made = [
                await self.world.denizen.spaces.create(each, [*people, agent], organization=home)
                for each in ("Hall", "Yard")
            ]
            self.people.append(people)
            self.strangers.append(await self.world.person(f"Mia {name}", organization=home))
            self.agents.append(agent.entity)
            self.spaces.append(made)

    async def do(self, op: Op) -> None:
        kind, which, content = op
        home, denizen = which % 2, self.world.denizen
        data = b"content %d" % content
        person, space = self.people[home][which // 2 % 2], self.spaces[home][which // 4 % 2]
        if kind == "post":
            file = await denizen.files.upload(person, data, name="a.txt")
            await self._post(home, space, person, data, file.id)
        elif kind == "tool":
            file = await denizen.files.upload(self.agents[home], data, name="b.txt")
            await denizen.agents.trigger(self.agents[home].id, "scanner", files=[file])  # pyright: ignore[reportArgumentType]
            self.of_tools.append(Expected(home, MessageId(""), self.agents[home].id, data, file.id))
        elif self.files:
            chosen = self.files[which % len(self.files)]
            if kind == "delete":
                await denizen.spaces.delete_message(chosen.message, by=self._owner(chosen))
                self.files = [each for each in self.files if each.message != chosen.message]
            elif kind == "forget":
                await denizen.spaces.forget_message(chosen.message)
                self._forget(chosen)
            else:
                author = self.agents[chosen.home] if kind == "agent sends on" else self.people[chosen.home][0]
                await self._post(chosen.home, self.spaces[chosen.home][1], author, chosen.content, chosen.id)

    def _owner(self, file: Expected) -> Entity:
        everyone = [*self.people[file.home], self.agents[file.home]]
        return next(each for each in everyone if each.id == file.author)

    def _forget(self, chosen: Expected) -> None:
        """Gone from the message, and wherever an agent of that organization has it."""
        agent = self.agents[chosen.home].id

        def stays(each: Expected) -> bool:
            same = (each.home, each.content) == (chosen.home, chosen.content)
            return each.message != chosen.message and not (same and each.author == agent)

        self.files = [each for each in self.files if stays(each)]
        self.of_tools = [each for each in self.of_tools if stays(each)]

    async def _post(self, home: int, space: Space, author: Entity, data: bytes, file_id: str) -> None:
        posted = await self.world.denizen.spaces.post(space, author, "Look.", files=[file_id])  # pyright: ignore[reportArgumentType]
        messages = await self.world.denizen.spaces.messages(space)
        [file] = next(each for each in messages if each.id == posted.id).files
        self.files.append(Expected(home, posted.id, author.id, data, file.id))

    async def check(self) -> None:
        denizen = self.world.denizen
        shown: dict[str, str] = {}
        for home in range(2):
            for space in self.spaces[home]:
                for message in await denizen.spaces.messages(space):
                    shown.update({each.id: message.id for each in message.files})
        assert shown == {each.id: each.message for each in self.files}
        for each in [*self.files, *self.of_tools]:
            assert await denizen.files.read(each.id) == each.content  # pyright: ignore[reportArgumentType]
            for stranger in (self.people[1 - each.home][0], self.strangers[each.home]):
                with pytest.raises(NotFound):
                    await denizen.files.get(each.id, reader=stranger)  # pyright: ignore[reportArgumentType]
        wanted = {(each.home, each.content) for each in [*self.files, *self.of_tools]}
        rows = await denizen.db.read(_contents)
        assert len([row for row in rows if row[3] is None]) == len(wanted), "once in each organization"
        await tidy(denizen.db)
        kept = {row[0] for row in rows if row[3] is None}
        assert {row[0] for row in await denizen.db.blobs.read(lambda tx: tx.all(_CHUNKS))} == kept
        for home in range(2):
            for space in self.spaces[home]:
                lines = [json.loads(line) async for line in denizen.spaces.export(space)]
                ids = {each["id"] for each in lines if each.get("row") == "file"}
                assert ids == {each.id for message in await denizen.spaces.messages(space) for each in message.files}


def _contents(tx: Tx) -> list[tuple[str, str, str | None, int | None]]:
    return [(id, home, digest, dropped) for id, home, digest, dropped in tx.all(_CONTENTS)]


@given(life=ops)
@settings(max_examples=15)
def test_files_are_kept_as_long_as_a_message_has_them(life: list[Op]) -> None:
    """Stored once in each organization, never across, read only in their space, exported with it, and forgotten also
    where agents have them.
    """
    asyncio.run(_live(life))


async def _live(life: list[Op]) -> None:
    async with open_world("sqlite://") as world:
        town = Town(world)
        await town.found()
        for op in life:
            await town.do(op)
        await town.check()
