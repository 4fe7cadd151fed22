"""The checker finds nothing in a database that agents have lived in, and names whatever is broken in it by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from denizen import Runtime, tool
from denizen.models.scripted import call, reply, scripted, skip
from denizen.tools.tool import OutsideTool
from tests.damaged import House, houses

ADA = "(SELECT id FROM entities WHERE handle = 'ada')"
BO = "(SELECT id FROM entities WHERE handle = 'bo')"
FIRST = f"(SELECT id FROM cycles WHERE agent_id = {ADA} AND number = 1)"
SECOND = f"(SELECT id FROM cycles WHERE agent_id = {ADA} AND number = 2)"
OPEN = "(SELECT id FROM cycles WHERE number IS NULL)"
SKIPPED = "(SELECT cycle_id FROM ledger WHERE kind = 'skip' LIMIT 1)"
DESK = "(SELECT id FROM spaces WHERE name = 'Desk')"
BOARD = "(SELECT id FROM spaces WHERE name = 'Board')"


async def _live(denizen: Runtime) -> None:
    """Everything that can stand in a database: cycles that acted, were reminded, delivered, skipped, or are open."""
    hanging = asyncio.Event()

    @tool(results="outside")
    async def note(line: str) -> str:
        """Write a line down."""
        return f"noted {line}"

    @tool
    async def hang() -> None:
        """Take for ever."""
        hanging.set()
        await asyncio.Event().wait()

    ada_says = scripted(
        *([call("note", line="a"), reply("One.")], "Answered."),
        *("To myself.", reply("Two."), "Answered."),
    )
    noor, finn = await denizen.people.create("Noor"), await denizen.people.create("Finn")
    ada = await denizen.agents.create("Ada", model=ada_says, tools=[note])
    bo = await denizen.agents.create("Bo", model=scripted(skip("not mine"), skip(), [call("hang")]), tools=[hang])
    cleo = await denizen.agents.create("Cleo", model=scripted("Three."), cycle={"silent_reply": "deliver"})
    desk = await denizen.spaces.create("Desk", [noor, ada])
    square = await denizen.spaces.create("Square", [noor, finn, ada, bo], floor="all")
    corner = await denizen.spaces.create("Corner", [finn, cleo])
    await denizen.spaces.set_attention(square, ada, "mentions")
    for space, author, words in ((desk, noor, "First?"), (desk, noor, "Second?"), (corner, finn, "Third?")):
        await denizen.spaces.post(space, author, words)
        await denizen.run_until_idle()
    for words in ("For nobody.", "For @noor."):
        await denizen.spaces.post(square, finn, words)
        await denizen.run_until_idle()
    async with denizen.living():
        await denizen.spaces.post(square, finn, "And now, Bo?")
        await asyncio.wait_for(hanging.wait(), 60)
    await _delete_in_mid_cycle(denizen, hang, hanging)
    await denizen.panels.create("Board", [noor])
    await denizen.spaces.post(square, noor, "Still there?")
    await denizen.spaces.post(square, noor, "And @ada?")


async def _delete_in_mid_cycle(denizen: Runtime, hang: OutsideTool, hanging: asyncio.Event) -> None:
    dora = await denizen.agents.create("Dora", model=scripted([call("hang")]), tools=[hang])
    hall = await denizen.spaces.create("Hall", [await denizen.people.find("noor"), dora])
    async with denizen.living():
        # Bo has been told by then that nobody knows what came of its call: else that depended on who is faster.
        await denizen.run_until_idle()
        hanging.clear()
        await denizen.spaces.post(hall, await denizen.people.find("noor"), "Dora?")
        await asyncio.wait_for(hanging.wait(), 60)
    await denizen.agents.delete(dora)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    yield from houses(request, tmp_path_factory.mktemp("checker"), _live)


def test_a_database_that_was_lived_in_is_whole(house: House) -> None:
    assert house.check() == []


def test_what_breaks_it_in_a_test_is_undone(house: House) -> None:
    """Otherwise the tests below would see each other."""
    assert house.broken_by(f"DELETE FROM minds WHERE agent_id = {ADA}")
    assert house.check() == []


RESULTS = f"cycle_id = {FIRST} AND kind = 'results'"
AFTER_ALL = (
    "INSERT INTO log (agent_id, seq, cycle_id, kind, message, tokens, created_at) "
    f"SELECT agent_id, (SELECT MAX(seq) + 1 FROM log WHERE agent_id = {ADA}), cycle_id, kind, message, 1, 1 FROM log "
    f"WHERE cycle_id = {SECOND} AND kind = '{{kind}}'"
)
COPY = "INSERT INTO {0} ({1}) SELECT {2} FROM {0} WHERE {3}"
OLD_MESSAGE = f"(SELECT id FROM messages WHERE space_id = {DESK} AND seq = 1)"
EVENTS = "agent_id, id, type, lane, state, wakes, hop, cycle_id, space_id, message_id, created_at"
EVENTS_FROM = "agent_id, 'again', type, lane, state, wakes, hop, cycle_id, space_id, message_id, created_at"
STANCE = "INSERT INTO stances (agent_id, space_id, reflected_turns, updated_at) "
SIGNAL = "INSERT INTO signals (agent_id, space_id, cycle, name, rule, created_at) "
REFLECTION = (
    "INSERT INTO reflections (agent_id, space_id, cycle, metaprompt, cause, outcome, state, created_at) "
    f"VALUES ({ADA}, {DESK}, {{}}, 'm', 'interval', 'failed', '{{{{}}}}', 1)"
)
VOICE = "INSERT INTO voice_stances (space_id, voice, reflected_turns, updated_at) "
VOICE_SIGNAL = (
    "INSERT INTO voice_signals (space_id, voice, turn, name, rule, created_at) "
    f"VALUES ({BOARD}, 'assistant', {{}}, 'user_confused', '', 1)"
)
VOICE_REFLECTION = (
    "INSERT INTO voice_reflections (space_id, voice, turn, metaprompt, cause, outcome, state, created_at) "
    f"VALUES ({BOARD}, 'assistant', {{}}, 'm', 'interval', 'failed', '{{{{}}}}', 1)"
)
A_TURN = f"UPDATE panels SET turns = 1 WHERE space_id = {BOARD}"

BREAKS: list[tuple[str, Sequence[str], int, str]] = [
    # One mind, one history
    ("no mind", [f"DELETE FROM minds WHERE agent_id = {ADA}"], 1, "The agent has no mind."),
    (
        "cycle count",
        [f"UPDATE minds SET cycle_count = 3 WHERE agent_id = {ADA}"],
        1,
        "The agent counts 3 cycles, but its cycles are not those numbers.",
    ),
    (
        "cycle numbers",
        [f"UPDATE cycles SET number = 3 WHERE id = {SECOND}"],
        1,
        "The agent counts 2 cycles, but its cycles are not those numbers.",
    ),
    (
        "window",
        [f"UPDATE minds SET window_from = 99 WHERE agent_id = {ADA}"],
        1,
        "The window begins at 99, where the log has nothing.",
    ),
    (
        "cycle not marked",
        [f"UPDATE cycles SET outside_from = NULL WHERE id = {FIRST}"],
        1,
        "An entry holds text from outside, and its cycle is not marked.",
    ),
    (
        "response not marked",
        [f"UPDATE log SET outside = NULL WHERE cycle_id = {FIRST} AND kind = 'response'"],
        1,
        "The request of a response held text from outside, and the response is not marked.",
    ),
    (
        "mind not marked",
        [f"UPDATE minds SET outside = 0 WHERE agent_id = {ADA}"],
        1,
        "A cycle held text from outside, and the mind of its agent is not marked.",
    ),
    (
        "message not marked",
        [f"UPDATE messages SET outside = 0 WHERE cycle_id = {SECOND}"],
        1,
        "A message was made from text from outside, and is not marked.",
    ),
    (
        "two open cycles",
        [
            "DROP INDEX ix_cycles_open",
            f"UPDATE cycles SET number = NULL, outcome = 'open' WHERE agent_id = {ADA}",
            f"UPDATE minds SET cycle_count = 0 WHERE agent_id = {ADA}",
            f"UPDATE events SET state = 'taken' WHERE agent_id = {ADA} AND state = 'done'",
        ],
        1,
        "More than one cycle of the agent is open.",
    ),
    (
        "gap in the log",
        [
            (
                f"UPDATE log SET seq = seq + 1 WHERE cycle_id = {SECOND} AND kind = 'response' AND seq = "
                f"(SELECT MAX(seq) FROM log WHERE agent_id = {ADA})"
            )
        ],
        1,
        "The log's numbers have gaps, or do not begin at 1.",
    ),
    (
        "entries of no cycle",
        [
            (
                "INSERT INTO log (agent_id, seq, cycle_id, kind, message, tokens, created_at) "
                f"SELECT {ADA}, MAX(seq) + 1, 'nothing', 'note', '{{}}', 1, 1 FROM log WHERE agent_id = {ADA}"
            )
        ],
        1,
        "The log holds entries of a cycle that does not exist.",
    ),
    (
        "cycles out of order",
        [
            f"UPDATE cycles SET number = 99 WHERE id = {FIRST}",
            f"UPDATE cycles SET number = 1 WHERE agent_id = {ADA} AND number = 2",
            f"UPDATE cycles SET number = 2 WHERE agent_id = {ADA} AND number = 99",
        ],
        1,
        "The log does not hold the cycles one after the other, in their order.",
    ),
    ("outcome", [f"UPDATE cycles SET outcome = 'open' WHERE id = {FIRST}"], 1, "A cycle with a number is open."),
    (
        "open outcome",
        [f"UPDATE cycles SET outcome = 'acted' WHERE id = {OPEN}"],
        1,
        "A cycle without a number is acted.",
    ),
    (
        "no entries",
        [
            (
                "INSERT INTO cycles (id, agent_id, number, outcome, first_seq, started_at, summary) "
                f"VALUES ('new', {ADA}, 3, 'acted', 12, 1, '')"
            ),
            f"UPDATE minds SET cycle_count = 3 WHERE agent_id = {ADA}",
            (
                "UPDATE events SET state = 'done', cycle_id = 'new', waits = 0 "
                f"WHERE agent_id = {ADA} AND type = 'mention'"
            ),
        ],
        1,
        "A cycle has no entries in the log.",
    ),
    (
        "no inbox",
        [f"UPDATE log SET kind = 'note' WHERE cycle_id = {FIRST} AND seq = 1"],
        1,
        "A cycle does not begin with its inbox, at the number it says.",
    ),
    (
        "first number",
        [f"UPDATE cycles SET first_seq = 2 WHERE id = {FIRST}"],
        1,
        "A cycle does not begin with its inbox, at the number it says.",
    ),
    (
        "unreadable",
        [f"UPDATE log SET message = '{{}}' WHERE cycle_id = {FIRST} AND kind = 'inbox'"],
        1,
        "An entry of the log cannot be read.",
    ),
    (
        "call without result",
        [
            f"UPDATE log SET kind = 'note' WHERE {RESULTS}",
        ],
        1,
        "The calls of step 0 have no results.",
    ),
    (
        "results of other calls",
        [f"UPDATE log SET message = REPLACE(message, 'call_1', 'call_7') WHERE {RESULTS}"],
        1,
        "The results of step 0 are not those of its calls, in their order.",
    ),
    (
        "results without a call",
        [f"UPDATE log SET kind = 'results' WHERE cycle_id = {SECOND} AND kind = 'nudge'"],
        1,
        "The results of step 0 are not those of its calls, in their order.",
    ),
    (
        "results after no response",
        [AFTER_ALL.format(kind="nudge"), AFTER_ALL.format(kind="results")],
        1,
        "The log holds results that follow no response.",
    ),
    (
        "steps",
        [f"UPDATE cycles SET steps = 1 WHERE id = {FIRST}"],
        1,
        "A cycle counts 1 steps, but the log holds 2 responses.",
    ),
    # A message is in every inbox that attends to it
    (
        "message without event",
        ["DELETE FROM events WHERE message_id = (SELECT id FROM messages WHERE text = 'Still there?')"],
        2,
        "A message is not in an inbox that attends to it.",
    ),
    (
        "mention without event",
        [f"DELETE FROM events WHERE agent_id = {ADA} AND type = 'mention'"],
        2,
        "A message is not in an inbox that attends to it.",
    ),
    (
        "event without message",
        [
            COPY.format("events", EVENTS, EVENTS_FROM, f"agent_id = {ADA} AND type = 'mention'"),
            "UPDATE events SET message_id = 'nothing' WHERE id = 'again'",
        ],
        2,
        "An inbox holds the event of a message that does not exist.",
    ),
    (
        "twice in one inbox",
        [COPY.format("events", EVENTS, EVENTS_FROM, f"agent_id = {ADA} AND type = 'mention'")],
        2,
        "A message is 2 times in one inbox.",
    ),
    (
        "event of another space",
        [f"UPDATE events SET space_id = {DESK} WHERE agent_id = {ADA} AND type = 'mention'"],
        2,
        "An event says that its message is of another space.",
    ),
    (
        "own message",
        [f"UPDATE messages SET author_id = {ADA} WHERE id = (SELECT message_id FROM events WHERE type = 'mention')"],
        2,
        "An agent is told its own message.",
    ),
    (
        "no mention",
        [f"UPDATE events SET type = 'space_message' WHERE agent_id = {ADA} AND type = 'mention'"],
        2,
        "A message is a space_message for an agent whom it does not so address.",
    ),
    (
        "gap in a space",
        [f"UPDATE spaces SET last_seq = last_seq + 1 WHERE id = {DESK}"],
        2,
        "The space counts 5 messages, but does not hold those numbers.",
    ),
    # Events
    (
        "state",
        [f"UPDATE events SET state = 'lost' WHERE agent_id = {ADA} AND type = 'mention'"],
        3,
        "An event is in a state that there is not: 'lost'.",
    ),
    (
        "taken by nobody",
        [f"UPDATE events SET state = 'taken', cycle_id = {FIRST} WHERE agent_id = {ADA} AND type = 'mention'"],
        3,
        "An event is taken by a cycle that is not the agent's open one.",
    ),
    (
        "done without an end",
        [f"UPDATE events SET state = 'done', waits = 0 WHERE agent_id = {ADA} AND type = 'mention'"],
        3,
        "An event is done, but no cycle of its agent ended with it.",
    ),
    (
        "done by an open cycle",
        [f"UPDATE events SET state = 'done' WHERE agent_id = {BO} AND cycle_id = {OPEN}"],
        3,
        "An event is done, but no cycle of its agent ended with it.",
    ),
    (
        "pending with a cycle",
        [f"UPDATE events SET cycle_id = {FIRST} WHERE agent_id = {ADA} AND type = 'mention'"],
        3,
        "An event is pending and yet belongs to a cycle.",
    ),
    (
        "set aside without a word",
        [f"UPDATE events SET state = 'dead', attempts = 1 WHERE agent_id = {ADA} AND type = 'mention'"],
        11,
        "Somebody waits for an answer to a message that was set aside.",
    ),
    (
        "parked without a word",
        [f"UPDATE agents SET parked_cause = 'key', parked_until = 9000000000000000000 WHERE id = {ADA}"],
        11,
        "Somebody waits for an agent that is parked, suspended or deleted, and is not told so.",
    ),
    (
        "suspended without a word",
        [f"UPDATE agents SET status = 'suspended' WHERE id = {ADA}"],
        11,
        "Somebody waits for an agent that is parked, suspended or deleted, and is not told so.",
    ),
    (
        "events lost",
        [f"UPDATE events SET cycle_id = {SECOND} WHERE cycle_id = {FIRST}"],
        3,
        "A cycle has no events: what it was woken by is lost.",
    ),
    # Nothing twice
    (
        "said twice",
        [
            f"UPDATE spaces SET last_seq = last_seq + 1 WHERE id = {DESK}",
            COPY.format(
                "messages",
                "id, space_id, seq, author_id, text, hop, cycle_id, created_at",
                "'again', space_id, 5, author_id, text, hop, cycle_id, created_at",
                f"cycle_id = {FIRST}",
            ),
        ],
        4,
        "A cycle recorded 1 sent messages, but 2 messages are of that cycle.",
    ),
    (
        "never said",
        [f"UPDATE messages SET cycle_id = NULL WHERE cycle_id = {FIRST}"],
        4,
        "A cycle recorded 1 sent messages, but 0 messages are of that cycle.",
    ),
    (
        "said by another",
        [
            f"UPDATE messages SET author_id = (SELECT id FROM entities WHERE handle = 'noor') WHERE cycle_id = {FIRST}",
            COPY.format("events", EVENTS, EVENTS_FROM, f"agent_id = {ADA} AND message_id = {OLD_MESSAGE}"),
            f"UPDATE events SET message_id = (SELECT id FROM messages WHERE cycle_id = {FIRST}) WHERE id = 'again'",
        ],
        4,
        "A message is of a cycle of another than its author.",
    ),
    (
        "effect of no call",
        [f"UPDATE effects SET tool = 'shout' WHERE cycle_id = {FIRST} AND tool = 'note'"],
        4,
        "An effect of shout at step 0, position 0 belongs to no call.",
    ),
    (
        "intent left",
        [f"UPDATE effects SET state = 'intent' WHERE cycle_id = {FIRST} AND tool = 'note'"],
        4,
        "A call of note at step 0, position 0 was begun and its end never recorded.",
    ),
    (
        "another result",
        [f"UPDATE effects SET result = 'noted b' WHERE cycle_id = {FIRST} AND tool = 'note'"],
        4,
        "The model was told another result of note at step 0, position 0 than is recorded.",
    ),
    (
        "result of nothing",
        [f"DELETE FROM effects WHERE cycle_id = {FIRST} AND tool = 'note'"],
        4,
        "Step 0 has results of calls that were never recorded.",
    ),
    (
        "asked once more than answered",
        [
            COPY.format(
                "ledger",
                "agent_id, cycle_id, kind, created_at",
                "agent_id, cycle_id, 'usage', 1",
                f"number = (SELECT MIN(number) FROM ledger WHERE cycle_id = {FIRST})",
            )
        ],
        4,
        "The ledger holds 3 model calls of a cycle with 2 responses.",
    ),
    (
        "tokens",
        [
            f"UPDATE cycles SET input_tokens = 7, output_tokens = 1 WHERE id = {FIRST}",
            f"UPDATE ledger SET input_tokens = 4, output_tokens = 0 WHERE cycle_id = {FIRST}",
        ],
        4,
        "The ledger sums a cycle's usage to (8, 0), the cycle to (7, 1).",
    ),
    (
        "effect of no cycle",
        [
            (
                "INSERT INTO effects (cycle_id, step, position, tool, state, changes, created_at) "
                "VALUES ('nothing', 0, 0, 'note', 'done', 1, 1)"
            )
        ],
        4,
        "An effect is of a cycle that does not exist.",
    ),
    (
        "long result of no cycle",
        [f"INSERT INTO overflow (id, agent_id, cycle_id, text, created_at) VALUES ('x', {ADA}, 'nothing', '', 1)"],
        4,
        "A long result is of a cycle that does not exist.",
    ),
    (
        "message of no cycle",
        [f"UPDATE messages SET cycle_id = 'nothing' WHERE id = {OLD_MESSAGE}"],
        4,
        "A message is of a cycle that does not exist.",
    ),
    # One thinker
    (
        "no lease",
        [f"DELETE FROM leases WHERE agent_id = {ADA}"],
        5,
        "The agent has no lease, so nobody can think for it.",
    ),
    (
        "held by nobody",
        [f"UPDATE leases SET until = 9 WHERE agent_id = {ADA}"],
        5,
        "A lease runs without a holder, or is held without an end.",
    ),
    (
        "epoch",
        [f"UPDATE leases SET epoch = 0 WHERE agent_id = {ADA}"],
        5,
        "Someone has thought for the agent, but its lease is in epoch 0.",
    ),
    (
        "suspended",
        [
            "UPDATE events SET waits = 0",
            f"UPDATE agents SET status = 'suspended' WHERE id = {ADA}",
            f"UPDATE leases SET holder = 'x', until = 9 WHERE agent_id = {ADA}",
        ],
        5,
        "The agent is suspended, and yet someone may think for it.",
    ),
    # Skips leave no trace
    (
        "skip in the log",
        [
            (
                "INSERT INTO log (agent_id, seq, cycle_id, kind, message, tokens, created_at) "
                f"SELECT {BO}, MAX(seq) + 1, {SKIPPED}, 'note', '{{}}', 1, 1 FROM log WHERE agent_id = {BO}"
            )
        ],
        6,
        "A skipped cycle left a trace in the log.",
    ),
    (
        "skip in the records",
        [f"INSERT INTO ledger (agent_id, cycle_id, kind, created_at) VALUES ({BO}, {OPEN}, 'skip', 1)"],
        6,
        (
            "A skipped cycle left a trace in the cycle records.\n"
            "A skipped cycle left a trace in the log.\n"
            "A skipped cycle left a trace in the effects."
        ),
    ),
    (
        "skip in the effects",
        [
            (
                "INSERT INTO effects (cycle_id, step, position, tool, state, changes, created_at) "
                f"VALUES ({SKIPPED}, 0, 0, 'note', 'done', 1, 1)"
            )
        ],
        6,
        "A skipped cycle left a trace in the effects.",
    ),
    (
        "skip in the long results",
        [f"INSERT INTO overflow (id, agent_id, cycle_id, text, created_at) VALUES ('x', {ADA}, {SKIPPED}, '', 1)"],
        6,
        "A skipped cycle left a trace in the long results.",
    ),
    (
        "skip in a space",
        [f"UPDATE messages SET cycle_id = {SKIPPED} WHERE id = {OLD_MESSAGE}"],
        6,
        "A skipped cycle left a trace in a space.",
    ),
    # What was lived is reflected on once
    (
        "mark of an agent",
        [f"INSERT INTO reflecting (agent_id, cycle) VALUES ({ADA}, 3)"],
        4,
        "The agent has reflected on a cycle that it has not lived.",
    ),
    (
        "turns of an agent",
        [f"{STANCE} VALUES ({ADA}, {DESK}, 3, 1)"],
        4,
        "The agent has reflected on more turns than it has lived cycles.",
    ),
    (
        "signal of an agent",
        [f"{SIGNAL} VALUES ({ADA}, {DESK}, 3, 'user_confused', '', 1)"],
        4,
        "A signal is of a cycle that was not lived.",
    ),
    ("metaprompt", [REFLECTION.format(3)], 4, "A metaprompt was asked after a cycle that was not lived."),
    ("metaprompt twice", [REFLECTION.format(2)] * 2, 4, "A metaprompt was asked twice after one cycle."),
    (
        "mark of a panel",
        [f"INSERT INTO panel_reflecting (space_id, turn) VALUES ({BOARD}, 1)"],
        4,
        "The panel has reflected on a turn that there was not.",
    ),
    (
        "turns of a voice",
        [f"{VOICE} VALUES ({BOARD}, 'assistant', 1, 1)"],
        4,
        "A voice has reflected on more turns than there were.",
    ),
    ("signal of a voice", [VOICE_SIGNAL.format(1)], 4, "A signal is of a turn that there was not."),
    ("signal twice", [A_TURN, *[VOICE_SIGNAL.format(1)] * 2], 4, "A signal was seen twice after one turn."),
    (
        "metaprompt of a voice",
        [VOICE_REFLECTION.format(1)],
        4,
        "A metaprompt was asked after a turn that there was not.",
    ),
    (
        "metaprompt of a voice twice",
        [A_TURN, *[VOICE_REFLECTION.format(1)] * 2],
        4,
        "A metaprompt was asked twice after one turn.",
    ),
    (
        "nobody's mind",
        [f"{VOICE} VALUES ({BOARD}, 'x', 0, 1)"],
        4,
        "A state of mind is of nobody who answers in the panel.",
    ),
]


@pytest.mark.parametrize(("sql", "invariant", "sentence"), [each[1:] for each in BREAKS], ids=[b[0] for b in BREAKS])
def test_what_is_broken_is_named(house: House, sql: Sequence[str], invariant: int, sentence: str) -> None:
    """That, and nothing else."""
    found = house.broken_by(*sql)
    assert [each.sentence for each in found] == sentence.splitlines()
    assert {each.invariant for each in found} == {invariant}
    assert all(each.ids for each in found)


@pytest.mark.parametrize(
    ("table", "where", "sentence"),
    [
        ("agents", f"id = {ADA}", "An agent has no definition."),
        ("entities", "handle = 'ada'", "is not in entities."),
        ("spaces", "name = 'Desk'", "is not in spaces."),
        ("organizations", "1 = 1", "is not in organizations."),
        ("spending", f"agent_id = {ADA}", "The spending of an agent is less than what its model calls used."),
        ("passages", f"agent_id = {ADA} AND number = 2", "Passages of an agent's past are missing."),
    ],
)
def test_a_deleted_row_is_noticed(house: House, table: str, where: str, sentence: str) -> None:
    found = [each for each in house.broken_by(f"DELETE FROM {table} WHERE {where}") if each.invariant == 0]
    assert any(each.sentence.endswith(sentence) for each in found), found
    assert all(each.ids for each in found)


def test_a_panel_without_its_settings_is_noticed(house: House) -> None:
    asked = f"""INSERT INTO rounds (id, space_id, turn, step, kind, message_id, asked_by, state, crosstalk, created_at)
                VALUES ('r', {BOARD}, 1, 0, 'ask', 'm', {ADA}, 'complete', 0, 0)"""
    found = house.broken_by(asked, f"DELETE FROM panels WHERE space_id = {BOARD}")
    assert "A panel has no settings." in [each.sentence for each in found]
