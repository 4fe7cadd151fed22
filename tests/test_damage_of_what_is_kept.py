"""Damage to files, memories, events and plans: found, or known to be out of scope."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy import delete, select

from denizen import Runtime
from denizen.checker import check, check_deeply
from denizen.checks.files_and_memories import check_bytes
from denizen.files import storing
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate, remember
from denizen.models.scripted import call, reply, scripted
from denizen.storage.database import Tx, statement
from denizen.storage.schema import chunks, contents
from tests.damaged import House, houses

MEMORY = "(SELECT number FROM memories WHERE text = 'Noor likes tea.')"
SPACES = "(SELECT id FROM spaces WHERE name = '{0}')"


async def _live(denizen: Runtime) -> None:
    """Two conversations; a file of two chunks; memories of a person and of a conversation; a timer."""
    ada_says = scripted(
        *(reply("Thanks."), "Thanked."),
        *([call("set_timer", after="1 hour", reason="Tea."), reply("In an hour.")], "Set a timer."),
    )
    noor = await denizen.people.create("Noor")
    ada = await denizen.agents.create("Ada", model=ada_says)
    desk = await denizen.spaces.create("Desk", [noor, ada])
    den = await denizen.spaces.create("Den", [noor, ada])
    await denizen.spaces.create("Attic", [noor])
    menu = await denizen.files.upload(noor, b"Soup. " * 100_000, name="menu.txt")
    await denizen.spaces.post(desk, noor, "The menu.", files=[menu])
    await denizen.run_until_idle()
    await denizen.spaces.post(den, noor, "Tea?")
    await denizen.run_until_idle()
    for owner, words in (
        (Owner("user", desk.organization_id, desk.id, noor.id), "Noor likes tea."),
        (Owner("conversation", desk.organization_id, desk.id), "There is soup."),
    ):
        await denizen.db.write(remember, owner, desk.id, [Candidate("facts", words, ())])


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    yield from houses(request, tmp_path_factory.mktemp("kept"), _live)


def test_a_database_with_files_and_memories_is_clean(house: House) -> None:
    assert house.check() == []
    assert house.run(check_bytes(house.runtime.db, deep=True)) == []


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        (["DELETE FROM files"], "A file of a message is missing."),
        (["UPDATE files SET message_id = NULL"], "A file of a message is missing."),
        (
            [f"DELETE FROM memories WHERE number = {MEMORY}"],
            "A memory is missing, and its words are still in the index.",
        ),
        (["UPDATE memories SET scope = 'organization'"], "A memory has another scope than its owner."),
        (
            [f"UPDATE memories SET owner = 'user:someone' WHERE number = {MEMORY}"],
            "A memory belongs to somebody else than its index says.",
        ),
        (
            [
                f"UPDATE events SET space_id = {SPACES.format('Attic')} WHERE space_id = {SPACES.format('Desk')}",
                f"UPDATE events SET space_id = {SPACES.format('Desk')} WHERE space_id = {SPACES.format('Den')}",
            ],
            "An event says that its message is of another space.",
        ),
    ],
)
def test_damage_is_found(house: House, sql: Sequence[str], sentence: str) -> None:
    found = [each for each in house.broken_by(*sql, how=check) if each.sentence == sentence]
    assert found, house.broken_by(*sql, how=check)
    assert all(each.ids for each in found)


def test_damage_to_the_bytes_of_a_file_is_found(house: House) -> None:
    """The quick form sees that some are missing, the deep one that they are others."""
    db = house.runtime.db
    ((content_id, size),) = house.run(db.read(_contents))

    def found(*, deep: bool) -> list[tuple[str, tuple[str, ...]]]:
        return [(each.sentence, each.ids) for each in house.run(check_bytes(db, deep=deep))]

    async def put(n: int, data: bytes | None) -> None:
        await db.blobs.write(_take_out, content_id, n)
        if data is not None:
            await db.blobs.write(storing.put_chunk, content_id, n, data)

    second = house.run(db.blobs.read(storing.read_chunk, content_id, 1))
    assert second is not None
    assert size > len(second)
    house.run(put(1, None))
    assert found(deep=False) == [("Bytes of a file are missing.", (content_id,))]
    house.run(put(1, second[::-1]))
    assert found(deep=False) == []
    assert found(deep=True) == [("The bytes of a file are not those that were uploaded.", (content_id,))]
    house.run(put(1, second))
    assert found(deep=True) == []


def _contents(tx: Tx) -> list[tuple[str, int]]:
    return [(content_id, size) for content_id, size in tx.all(statement(select(contents.c.id, contents.c.size)))]


def _take_out(tx: Tx, content_id: str, n: int) -> None:
    tx.run(statement(delete(chunks).where(chunks.c.content_id == content_id, chunks.c.n == n)))


@pytest.mark.parametrize("sql", ["UPDATE plans SET next_run = next_run + 60000000"])
def test_what_has_no_digest_may_change_unseen(house: House, sql: str) -> None:
    """What docs/check.md says is out of scope."""
    assert house.broken_by(sql, how=check_deeply) == []
