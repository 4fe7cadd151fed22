"""Automatic recall when a cycle opens: shows the agent older cycles that are relevant to its inbox.

The best cycles are shown whole if they fit, with what the agent said and did in them; of others, the relevant passages.
Only what is not in the window, and nothing if nothing is relevant. Text from a private space is shown only if the cycle
is in no other space. The search runs before the transaction that opens the cycle, which only reads the results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import bindparam, select

from denizen.clock import Instant
from denizen.consciousness import log
from denizen.consciousness.log import Entry
from denizen.consciousness.recall import settling
from denizen.consciousness.recall.embedding import QuestionVectors, kinship, meaning
from denizen.consciousness.recall.fetching import Filter, PassageAccess, RecalledPassage
from denizen.consciousness.recall.rendering import pack_cycles, render
from denizen.consciousness.recall.searching import Ranking, rank, read
from denizen.ids import AgentId, CycleId
from denizen.inbox.events import Event
from denizen.inbox.format import entry_text
from denizen.inbox.sources import EARLIER, Source
from denizen.plans.notes import notes_of
from denizen.storage.database import Tx, select_where, statement
from denizen.storage.schema import cycles, minds
from denizen.storage.schema import log as log_rows

HEADER: Final = "[RECALLED — from your older cycles, what may matter to this inbox; call recall for more]"
MOST_TOKENS: Final = 2_000
MOST_PASSAGES: Final = 100
JUDGED: Final = 20
WHOLE_CYCLES: Final = 3
"""How many cycles are recalled whole, at most."""
_PASSAGES_OF_A_CYCLE: Final = 50
QUERY_CHARACTERS: Final = 2_000
# Chosen with questions of the dev half of LoCoMo, and of people of whom the life knows nothing (docs/recall.md).
COVERED: Final = 0.46
"""The inbox is about the past if a passage with its neighbours has this share of the information in its words, each
weighted by rarity.
"""
COVERED_BESIDE_MEANING: Final = 0.48
"""The same with an embedder, which finds by meaning what shares few words."""
COVERED_OF_THEM: Final = 0.3
"""The same if the inbox names somebody who speaks in the passages."""
TELLING_WORDS: Final = 2.5
"""For a long inbox, at most the information of this many words that never occurred before is required."""
NEAR: Final = 1.8
"""Or if one of them is nearer in meaning, by this many standard deviations, than passages are to one another."""
_SLACK_TOKENS: Final = 30
"""For the header, and the frame of a message."""


@dataclass(frozen=True, slots=True)
class InboxCue:
    """The parts of the inbox that decide what is recalled."""

    query: str
    audience: frozenset[str]
    """The spaces it comes from."""
    before_cycle: int
    """Cycles older than this one are not in the window."""


@dataclass(frozen=True, slots=True)
class RecallInput:
    """The input of automatic recall."""

    inbox_tokens: int
    """Recalled text may have half of it."""
    zone: str
    recalled: frozenset[int]
    """The passages that were recalled before and are still shown."""
    ranking: Ranking


def recalled_in(entries: Iterable[Entry]) -> frozenset[int]:
    """The passages that these entries hold because they were recalled."""
    return frozenset(n for each in entries if each.kind == "recalled" for n in json.loads(each.request or "[]"))


_before_window = statement(
    select(minds.c.window_from, minds.c.cycle_count, cycles.c.number)
    .select_from(
        minds.outerjoin(
            log_rows, (log_rows.c.agent_id == minds.c.agent_id) & (log_rows.c.seq == minds.c.window_from)
        ).outerjoin(cycles, cycles.c.id == log_rows.c.cycle_id)
    )
    .where(minds.c.agent_id == bindparam("agent_id"))
)


def glance(tx: Tx, agent_id: AgentId, events: Sequence[Event]) -> InboxCue | None:
    """The recall input for these events; None while the window holds the whole history."""
    row = tx.one(_before_window, agent_id=agent_id)
    window_from, count, first_shown = row or (0, 0, 0)
    if window_from <= 1:
        return None
    return InboxCue(
        "\n".join(entry_text(event) for event in events)[:QUERY_CHARACTERS],
        _audience(events),
        count + 1 if first_shown is None else first_shown,
    )


def _audience(events: Iterable[Event]) -> frozenset[str]:
    return frozenset(event.space_id for event in events if event.space_id is not None)


def search(
    tx: Tx,
    agent_id: AgentId,
    seen: InboxCue,
    zone: str,
    embedder: str = "",
    asked: QuestionVectors | None = None,
    *,
    now: Instant | None = None,
) -> Ranking:
    """The best-ranked passages if they are relevant, otherwise none; `asked` is the meaning of the inbox."""
    near = None if asked is None else meaning(tx, agent_id, embedder, asked)
    only, audience = Filter(before_cycle=seen.before_cycle), seen.audience
    ranking = rank(
        tx,
        agent_id,
        seen.query,
        audience=audience,
        only=only,
        zone=zone,
        now=now,
        meaning=near,
        limit=MOST_PASSAGES,
        judged=JUDGED,
    )
    best = list(ranking.scores)[:JUDGED]
    kin: Mapping[int, float] = {}
    if asked is not None and near is not None:
        kin = kinship(tx, agent_id, embedder, asked, best, settling.extent(tx, agent_id).passages)
    return ranking if is_relevant(ranking, kin) else replace(ranking, scores={})


def come_to_mind(
    tx: Tx, agent_id: AgentId, cycle_id: CycleId, seq: int, events: Sequence[Event], occasion: RecallInput
) -> Entry | None:
    """A new entry, not yet written, with what is relevant to these events, or None. Call it before they are logged."""
    # Other events than those that were seen may have been taken: their own spaces decide what may be shown.
    ranking = replace(occasion.ranking, audience=_audience(events))
    tokens = min(MOST_TOKENS, occasion.inbox_tokens // 2) - _SLACK_TOKENS
    chosen = choose(tx, agent_id, ranking, tokens=max(tokens, 0), zone=occasion.zone, recalled=occasion.recalled)
    if not chosen:
        return None
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    text = f"{HEADER}\n\n{render(chosen, zone=occasion.zone)}"
    numbers = json.dumps([each.number for each in chosen])
    message, outside = ModelRequest(parts=[UserPromptPart(text)]), outside_of(tx, agent_id, chosen) or None
    return log.entry(seq, cycle_id, "recalled", message, request=numbers, outside=outside)


def choose(
    tx: Tx, agent_id: AgentId, ranking: Ranking, *, tokens: int, zone: str, recalled: frozenset[int] = frozenset()
) -> list[RecalledPassage]:
    """As much of what was found as fits, the best first, in order of time: whole cycles, then single passages."""
    new = [each for each in read(tx, agent_id, ranking) if each.number not in recalled]
    whole = _whole_cycles(tx, agent_id, new, ranking, recalled)
    return pack_cycles(new, whole, tokens=tokens, zone=zone)


def _whole_cycles(
    tx: Tx, agent_id: AgentId, found: Sequence[RecalledPassage], ranking: Ranking, recalled: frozenset[int]
) -> list[list[RecalledPassage]]:
    """The most relevant cycles, each with everything that may be seen and is not shown yet."""
    door = PassageAccess(tx, agent_id, ranking.audience, ranking.only)
    numbers = list(dict.fromkeys(each.cycle for each in found))[:WHOLE_CYCLES]
    cycles_found = [door.of_cycle(number, _PASSAGES_OF_A_CYCLE) for number in numbers]
    return [[each for each in passages if each.number not in recalled] for passages in cycles_found]


_read_outside = select_where(
    cycles, "id", "agent_id, number", cycles.c.number.is_not(None), cycles.c.outside_from.is_not(None)
)


def outside_of(tx: Tx, agent_id: AgentId, found: Iterable[RecalledPassage]) -> tuple[Source, ...]:
    """The sources of text from outside in these: a cycle that held such text, or a note that was made from it."""
    recalled = list(found)
    numbers = sorted({each.cycle for each in recalled if each.cycle})
    marked = any(tx.one(_read_outside, agent_id=agent_id, number=number) is not None for number in numbers)
    noted = any(each.kind == "note" for each in recalled)
    kept = [Source("memory", note.key) for note in notes_of(tx, agent_id) if note.outside] if noted else []
    read = [Source("file", name) for name in dict.fromkeys(each.who for each in recalled if each.from_file)]
    return (*((EARLIER,) if marked else ()), *kept, *read)


def is_relevant(ranking: Ranking, kin: Mapping[int, float]) -> bool:
    """Whether what was found is about the inbox: by shared words, or by meaning.

    A search always finds something: scores compare passages with one another and do not say that any is relevant.
    """
    if not ranking.scores:
        return False
    told = sum(ranking.rarity.values()) or 1.0
    share = COVERED_OF_THEM if ranking.named else COVERED_BESIDE_MEANING if kin else COVERED
    enough = min(share, TELLING_WORDS * max(ranking.rarity.values(), default=0.0) / told)
    return ranking.covered >= enough > 0 or max(kin.values(), default=0.0) >= NEAR
