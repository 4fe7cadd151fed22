"""Every kind of damage to a database is found, and a database that nothing has damaged is clean, whatever was done in
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from denizen import Runtime
from denizen.checker import check, check_deeply, check_quickly
from denizen.models.scripted import call, reply, scripted, skip
from denizen.tools.settings import ClientTool
from tests.damaged import House, houses

ADA = "(SELECT id FROM entities WHERE handle = 'ada')"
DESK = "(SELECT id FROM spaces WHERE name = 'Desk')"
FIRST = f"(SELECT id FROM cycles WHERE agent_id = {ADA} AND number = 1)"
SECOND = f"(SELECT id FROM cycles WHERE agent_id = {ADA} AND number = 2)"
COUNT = f"(SELECT MAX(number) FROM cycles WHERE agent_id = {ADA})"
LAST = f"(SELECT id FROM cycles WHERE agent_id = {ADA} AND number = {COUNT})"


def _message(text: str) -> str:
    return f"(SELECT id FROM messages WHERE text = '{text}')"


async def _live(denizen: Runtime) -> None:
    """Messages that were answered, edited, deleted and forgotten; a question that waits; a fork; somebody alone."""
    ada_says = scripted(
        *(reply("Tuesday."), "Answered."),
        *(reply("Both noted."), "Answered both."),
        *(reply("Yes."), "Answered."),
        *(reply("The code word is marzipan."), "Said the code word."),
        *(reply("Good night."), "Answered."),
    )
    confirm = ClientTool(name="confirm", description="Ask.", parameters={"type": "object", "properties": {}})
    noor, finn = await denizen.people.create("Noor"), await denizen.people.create("Finn")
    await denizen.people.create("Solo")
    ada = await denizen.agents.create("Ada", model=ada_says)
    bo = await denizen.agents.create("Bo", model=scripted(skip(), [call("confirm")]), tools=[confirm])
    desk = await denizen.spaces.create("Desk", [noor, finn, ada])
    square = await denizen.spaces.create("Square", [noor, bo])
    await denizen.spaces.create("Attic", [])
    await denizen.spaces.post(desk, noor, "When do we meet?")
    await denizen.run_until_idle()
    await denizen.spaces.post(desk, noor, "I bring cake.")
    late = await denizen.spaces.post(desk, noor, "I bring tea.")
    await denizen.run_until_idle()
    edited = await denizen.spaces.post(desk, finn, "Is it cold?")
    await denizen.run_until_idle()
    await denizen.spaces.edit_message(edited.id, "Is it warm?", by=finn)
    await denizen.spaces.edit_message(edited.id, "Is it hot?", by=finn)
    secret = await denizen.spaces.post(desk, noor, "What is the code word of the summer fair again?")
    await denizen.run_until_idle()
    await denizen.spaces.forget_message(secret.id, also_replies=True)
    await denizen.spaces.delete_message(late.id, by=noor)
    await denizen.spaces.post(desk, noor, "Good night!")
    await denizen.run_until_idle()
    await denizen.agents.fork(ada, at=2)
    for words in ("Nothing.", "May I?"):
        await denizen.spaces.post(square, noor, words)
        await denizen.run_until_idle()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    yield from houses(request, tmp_path_factory.mktemp("damage"), _live)


def test_a_database_after_edits_deletions_forgetting_and_forks_is_clean(house: House) -> None:
    assert house.check() == []


MISSING = [
    ("organization", ["DELETE FROM organizations"], "An organization is missing."),
    ("person without messages", ["DELETE FROM entities WHERE handle = 'solo'"], "An entity is missing."),
    ("agent's entity", [f"DELETE FROM entities WHERE id = {ADA}"], "An entity is missing."),
    ("empty space", ["DELETE FROM spaces WHERE name = 'Attic'"], "A space is missing."),
    (
        "membership",
        ["DELETE FROM memberships WHERE entity_id = (SELECT id FROM entities WHERE handle = 'finn')"],
        "A member of a space is missing.",
    ),
    ("question", ["DELETE FROM calls"], "A question is missing."),
    (
        "question together with what asked it and its event",
        [
            "DELETE FROM effects WHERE state = 'asked'",
            "DELETE FROM events WHERE cycle_id IN (SELECT cycle_id FROM calls)",
            "DELETE FROM calls",
        ],
        "A question is missing.",
    ),
    (
        "message of a person, with its event and its number",
        [
            f"DELETE FROM events WHERE message_id = {_message('May I?')}",
            "DELETE FROM messages WHERE text = 'May I?'",
            "UPDATE spaces SET last_seq = last_seq - 1 WHERE name = 'Square'",
        ],
        "The newest messages of a space are missing or replaced: its chain of digests ends otherwise.",
    ),
    (
        "newest cycle, with everything of it",
        [
            f"UPDATE events SET cycle_id = NULL, state = 'pending' WHERE cycle_id = {LAST}",
            f"DELETE FROM log WHERE cycle_id = {LAST}",
            f"DELETE FROM effects WHERE cycle_id = {LAST}",
            f"DELETE FROM ledger WHERE cycle_id = {LAST}",
            f"DELETE FROM cycles WHERE id = {LAST}",
            f"UPDATE minds SET cycle_count = cycle_count - 1 WHERE agent_id = {ADA}",
        ],
        "The newest cycles of an agent are missing or replaced: its chain of digests ends otherwise.",
    ),
]


@pytest.mark.parametrize(("sql", "sentence"), [each[1:] for each in MISSING], ids=[each[0] for each in MISSING])
def test_what_is_missing_is_found_even_by_the_quick_check(house: House, sql: Sequence[str], sentence: str) -> None:
    for how in (check_quickly, check_deeply):
        found = [each for each in house.broken_by(*sql, how=how) if each.sentence == sentence]
        assert found, how
        assert all(each.ids for each in found)


POSTED = "A message is not as it was posted, or the one before it is missing or replaced."
CHANGED = "A message is not as it was last changed."
WRITTEN = "An entry of a log is not as it was written."
REDACTED = "An entry of a log is not as it was last redacted."
ENDED = "A cycle is not as it ended: an entry or event of it was replaced, moved or removed."
SWAPPED = [
    "UPDATE {0} SET seq = -{1} WHERE seq = {1} AND {3}",
    "UPDATE {0} SET seq = {1} WHERE seq = {2} AND {3}",
    "UPDATE {0} SET seq = {2} WHERE seq = -{1} AND {3}",
]
OTHER = f"FROM log AS other WHERE other.cycle_id = {SECOND} AND other.kind = 'inbox'"
REPLACED = (
    "UPDATE log SET "
    + ", ".join(f"{name} = (SELECT {name} {OTHER})" for name in ("message", "salt", "digest"))
    + f" WHERE cycle_id = {FIRST} AND kind = 'inbox'"
)
CHANGES = [
    ("text", ["UPDATE messages SET text = 'I bring fish.' WHERE text = 'I bring cake.'"], POSTED),
    ("text of an edited message", ["UPDATE messages SET text = 'Is it hat?' WHERE text = 'Is it hot?'"], CHANGED),
    ("text of a deleted message", ["UPDATE messages SET text = 'Back.' WHERE text = '[deleted]'"], CHANGED),
    ("text of a forgotten message", ["UPDATE messages SET text = 'Back.' WHERE text = '[forgotten]'"], CHANGED),
    (
        "author",
        ["UPDATE messages SET author_id = (SELECT id FROM entities WHERE handle = 'finn') WHERE text = 'Good night!'"],
        POSTED,
    ),
    ("time", ["UPDATE messages SET created_at = created_at - 1 WHERE text = 'I bring cake.'"], POSTED),
    ("swapped messages", [each.format("messages", 1, 3, f"space_id = {DESK}") for each in SWAPPED], POSTED),
    ("swapped entries", [each.format("log", 2, 4, f"agent_id = {ADA}") for each in SWAPPED], WRITTEN),
    (
        "entry",
        [f"UPDATE log SET message = REPLACE(message, 'Tuesday', 'Someday') WHERE cycle_id = {FIRST}"],
        WRITTEN,
    ),
    (
        "entry that was redacted",
        ["UPDATE log SET message = REPLACE(message, '[forgotten]', 'remembered') WHERE message LIKE '%[forgotten]%'"],
        REDACTED,
    ),
    (
        "entry replaced by another one of the agent, with its digest",
        [REPLACED],
        ENDED,
    ),
    (
        "event moved to another cycle",
        [f"UPDATE events SET cycle_id = {FIRST} WHERE agent_id = {ADA} AND message_id = {_message('I bring cake.')}"],
        ENDED,
    ),
    (
        "event of a cycle that had two",
        [f"DELETE FROM events WHERE agent_id = {ADA} AND message_id = {_message('I bring cake.')}"],
        ENDED,
    ),
    (
        "edit taken out of the chain",
        ["DELETE FROM amendments WHERE number = (SELECT min(number) FROM amendments)"],
        CHANGED,
    ),
]


@pytest.mark.parametrize(("sql", "sentence"), [each[1:] for each in CHANGES], ids=[each[0] for each in CHANGES])
def test_what_is_changed_is_found_by_the_deep_check(house: House, sql: Sequence[str], sentence: str) -> None:
    found = [each for each in house.broken_by(*sql, how=check_deeply) if each.sentence == sentence]
    assert found
    assert all(each.ids for each in found)


def test_a_missing_self_and_a_missing_summary_are_found(house: House) -> None:
    found = house.broken_by(f"DELETE FROM selves WHERE agent_id = {ADA}", how=check)
    assert "The self that a request began with is missing." in [each.sentence for each in found]
    found = house.broken_by(f"UPDATE cycles SET summary = NULL WHERE id = {FIRST}", how=check)
    assert [(each.invariant, each.sentence) for each in found] == [(10, "A cycle has ended without a summary.")]
