"""The tool with which an agent searches its whole history. Read-only."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from pydantic import Field

from denizen.consciousness import recollection
from denizen.consciousness.recall.cues import Period, period_of
from denizen.consciousness.recall.embedding import Meaning, QuestionVectors, ask, meaning
from denizen.consciousness.recall.fetching import Filter, RecalledPassage
from denizen.consciousness.recall.rendering import pack, render
from denizen.consciousness.recall.searching import Ranking, rank, read
from denizen.consciousness.recall.terms import fold
from denizen.errors import InvalidInput
from denizen.ids import AgentId
from denizen.inbox.format import quoted_name
from denizen.models.embedders import Embedder
from denizen.plans import origins, told_changes
from denizen.spaces import directory
from denizen.storage.database import Database, Tx
from denizen.telemetry.logs import get_logger
from denizen.tools.background_calls import is_being_cancelled
from denizen.tools.tool import Arguments, Done, Hand, OwnTool, spaces_of

log_line = get_logger(__name__)

RECALL: Final = "recall"
TOKENS: Final = 3_000
"""The maximum size of a result."""
MOST_SHOWN: Final = 150
"""How many passages may fit."""
QUERY_CHARACTERS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Prepared:
    """The search result from before the transaction in which it is read."""

    ranking: Ranking
    meaning: Meaning | None
    """For another ranking, if the spaces of the cycle have changed."""


class Recall(Arguments):
    query: str = Field(
        min_length=1,
        max_length=QUERY_CHARACTERS,
    )
    when: str | None = Field(default=None, description='"May 2025", "last week", "A to B"')
    who: str | None = Field(default=None, description='A name, or "me"')
    space: str | None = None


def recall(tx: Tx, hand: Hand, arguments: Recall) -> Done:
    """What the agent's history has on the question, as much as fits; text from private spaces only inside them."""
    zone, _ = told_changes.zone_of(tx, hand.agent_id)
    audience = spaces_of(hand.events, hand.active_space_id)
    prepared = cast("Prepared | None", hand.prepared)
    if prepared is not None and prepared.ranking.audience == audience:
        ranking = prepared.ranking
    else:
        # The same response entered another space, or nothing could be prepared.
        ranking = _rank(tx, hand.agent_id, arguments, audience, prepared.meaning if prepared else None)
    found = read(tx, hand.agent_id, ranking)
    chosen = pack(found, tokens=min(TOKENS, (hand.characters - 200) // 4), zone=zone)
    if not chosen:
        return Done("Nothing of that was found in your life.")
    outside = recollection.outside_of(tx, hand.agent_id, chosen)
    return Done(render(chosen, zone=zone), sources=_sources(tx, hand.agent_id, chosen), outside=outside)


def _sources(tx: Tx, agent_id: AgentId, found: Sequence[RecalledPassage]) -> frozenset[str]:
    """The spaces that these come from; for notes, all spaces in which the agent has written some."""
    spaces = {each.space_id for each in found if each.space_id}
    noted = origins.origins_of(tx, agent_id) if any(each.kind == "note" for each in found) else {}
    return frozenset(spaces).union(*(from_ for fact, from_ in noted.items() if fact.startswith("note:")))


def _rank(
    tx: Tx, agent_id: AgentId, arguments: Recall, audience: frozenset[str], near: Meaning | None = None
) -> Ranking:
    zone, _ = told_changes.zone_of(tx, agent_id)
    only = Filter(
        period=_period(tx, arguments.when, zone),
        speakers=_speakers(tx, agent_id, arguments.who),
        space_id=_space(tx, agent_id, arguments.space),
    )
    return rank(tx, agent_id, arguments.query, audience=audience, only=only, zone=zone, meaning=near, limit=MOST_SHOWN)


def _period(tx: Tx, when: str | None, zone: str) -> Period | None:
    if when is None or not when.strip():
        return None
    period = period_of(when, now=tx.now, zone=zone)
    if period is None:
        raise InvalidInput(
            f"{quoted_name(when)} is not a time that can be searched. Use a date (2026-03-05, May 2025, 2025), "
            'one relative to now ("last week", "3 days ago"), or a span ("since Monday", "2026-01 to 2026-03").'
        )
    return period


def _speakers(tx: Tx, agent_id: AgentId, who: str | None) -> frozenset[str] | None:
    if who is None or not who.strip():
        return None
    wanted = fold(who.strip().removeprefix("@"))
    if wanted in ("me", "myself", "i"):
        return frozenset((agent_id,))
    here = directory.get_entity(tx, agent_id)
    known_here = directory.list_entities(tx, here.organization_id, also_left=True)
    named = {each.id for each in known_here if _is_called(wanted, each.name, each.handle)}
    # Services and plans are not entities of the organization: they are found by name.
    return frozenset((*named, who.strip()))


def _is_called(wanted: str, name: str, handle: str) -> bool:
    called = fold(name)
    return wanted in (handle, called) or wanted in called.split()[:1]


def _space(tx: Tx, agent_id: AgentId, space: str | None) -> str | None:
    if space is None or not space.strip():
        return None
    wanted = space.strip()
    mine = directory.spaces_of(tx, agent_id)
    for each in mine:
        if wanted in (each.id, each.name) or wanted.casefold() == each.name.casefold():
            return each.id
    names = ", ".join(quoted_name(each.name) for each in mine[:20])
    raise InvalidInput(f"You are in no space called {quoted_name(wanted)}. Yours are: {names or 'none'}.")


async def in_meaning(embedder: Embedder, agent_id: AgentId, query: str) -> QuestionVectors | None:
    """The meaning of the question; None if the embedder fails: then the search is by words only."""
    try:
        return await ask(embedder, query)
    except (Exception, asyncio.CancelledError) as error:  # whatever a provider raises
        if is_being_cancelled():
            raise
        log_line.warning("recalling by words only", agent=agent_id, error=repr(error))
        return None


def _prepare(
    tx: Tx, agent_id: AgentId, arguments: Recall, audience: frozenset[str], embedder: str, asked: QuestionVectors | None
) -> Prepared:
    near = None if asked is None else meaning(tx, agent_id, embedder, asked)
    return Prepared(_rank(tx, agent_id, arguments, audience, near), near)


async def look(
    db: Database, embedder: Embedder | None, agent_id: AgentId, wanted: Recall, audience: frozenset[str]
) -> list[RecalledPassage]:
    """What the agent would find in a cycle that is in these spaces, the best first. For people who inspect it."""
    asked = None if embedder is None else await in_meaning(embedder, agent_id, wanted.query)
    return await db.read(_look, agent_id, wanted, audience, embedder.name if embedder else "", asked)


def _look(
    tx: Tx, agent_id: AgentId, wanted: Recall, audience: frozenset[str], embedder: str, asked: QuestionVectors | None
) -> list[RecalledPassage]:
    return read(tx, agent_id, _prepare(tx, agent_id, wanted, audience, embedder, asked).ranking)


def recall_tool(db: Database | None = None, embedder: Embedder | None = None) -> OwnTool[Recall]:
    """The tool. With a database it searches before the transaction, and with an embedder by meaning too."""

    async def prepare(agent_id: AgentId, arguments: Recall, audience: frozenset[str]) -> Prepared:
        assert db is not None
        asked = None if embedder is None else await in_meaning(embedder, agent_id, arguments.query)
        return await db.read(_prepare, agent_id, arguments, audience, embedder.name if embedder else "", asked)

    return OwnTool(
        RECALL,
        "Search your whole past for what you do not see here.",
        Recall,
        recall,
        None if db is None else prepare,
        reads=True,
    )


RECALLING: Final = (recall_tool(),)
