"""What a panel needs of memory: an advisor's long conversation with a person, without the other advisors.

An advisor remembers what people said and its own replies, nothing else: the summary of a panel is each advisor's own.
What is brought back of long-term memory is the same for all of them: advisors are nobody of whom a person could have
told one alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.ids import AgentId, SpaceId
from denizen.memory import granting, items, reminding
from denizen.memory.audience import Owner
from denizen.memory.items import Remembered
from denizen.memory.rolling import Rolled
from denizen.storage.database import Tx

HEADER = "## What you remember\nFrom long-term memory, because of what was said; it may be out of date."
HEADING = "## What was said before\nOlder messages are not shown; this is what they came to, as you heard it:"


def summed_up(state: Rolled) -> str:
    """What stands in an advisor's prompt for the messages up to the cursor; empty: they are all shown."""
    return f"{HEADING}\n\n{state.summary}" if state.upto else ""


def owners(tx: Tx, panel_id: SpaceId, message_id: str | None) -> granting.Readable:
    """Whose memories the advisors may be told of, answering this message."""
    nobody = AgentId("")
    found = granting.readable(tx, nobody, [panel_id], [] if message_id is None else [message_id])
    return granting.Readable(tuple(each for each in found.owners if each.scope != "persona"), found.grant)


def still_there(tx: Tx, found: Sequence[Remembered], allowed: Sequence[Owner]) -> list[Remembered]:
    """Of what was found, what those who read along may know now, in the words it has now."""
    own = {each.number: each for each in items.find(tx, [each.number for each in found if each.number > 0])}
    keys = {each.key for each in allowed}
    # What another retriever found is not in our database: it is told as it was given.
    there = [own.get(each.number) if each.number > 0 else each for each in found]
    return [each for each in there if each is not None and each.owner in keys]


def reminded(found: Sequence[Remembered], characters: int = 2_800) -> str:
    """What long-term memory says to an advisor's next turn, as text; empty: nothing."""
    chosen = reminding.fitting(found, characters)
    return f"{HEADER}\n\n{reminding.render(chosen)}" if chosen else ""
