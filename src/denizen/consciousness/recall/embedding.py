"""Vectors of passages: made after their cycle, kept beside them, and compared with a question's.

They follow the passages by a cursor, so that whatever stops the work, it goes on where it was. Vectors of another
embedder are left alone until the new ones are all there, and then removed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import structlog
from sqlalchemy import LargeBinary, bindparam, case, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from denizen.clock import Clock
from denizen.consciousness.recall.fetching import said
from denizen.consciousness.recall.passages import VECTORS_IN_A_ROW
from denizen.ids import AgentId
from denizen.storage.database import Database, Tx, statement
from denizen.storage.schema import entities, messages, passages, recalls, vectors

if TYPE_CHECKING:
    from denizen.models.embedders import Embedder

log_line = structlog.get_logger(__name__)

_FOLLOW_SECONDS: Final = 5
_RETRY_SECONDS: Final = 55
_TOLD_SECONDS: Final = 10
MOST_VECTORS: Final = 100_000
"""The newest, with which a question is compared."""
NEAREST: Final = 300
"""Passages that are thought of only because they are near in meaning."""
_WEIGHT: Final = 1.3
"""Of nearness in meaning, beside words that are shared."""

Meaning = Callable[[Iterable[int]], Mapping[int, float]]
"""How near these passages, and the nearest of all, are to a question: by number, standardised and weighed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far all lives are embedded."""

    done: int
    all: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Passages of one agent that follow one another."""

    agent_id: AgentId
    first: int
    texts: tuple[str, ...]
    """Empty for what is forgotten."""


_behind = or_(recalls.c.embedder != bindparam("name"), recalls.c.embedded < recalls.c.passages)
_pending = statement(
    select(recalls.c.agent_id, case((recalls.c.embedder == bindparam("name"), recalls.c.embedded), else_=0))
    .where(_behind)
    .order_by(recalls.c.agent_id)
    .limit(1)
)
_progress = statement(
    select(
        func.coalesce(func.sum(case((recalls.c.embedder == bindparam("name"), recalls.c.embedded), else_=0)), 0),
        func.coalesce(func.sum(recalls.c.passages), 0),
    )
)
_texts = statement(
    select(passages.c.kind, entities.c.name, passages.c.speaker, said)
    .select_from(
        passages.outerjoin(messages, messages.c.id == passages.c.message_id).outerjoin(
            entities, entities.c.id == passages.c.speaker_id
        )
    )
    .where(
        passages.c.agent_id == bindparam("agent_id"),
        passages.c.number > bindparam("after"),
        passages.c.number <= bindparam("last"),
    )
    .order_by(passages.c.number)
)


def progress(tx: Tx, embedder: str) -> Progress:
    """How many passages of all agents have a vector of this embedder, of how many."""
    row = tx.one(_progress, name=embedder)
    return Progress(0, 0) if row is None else Progress(int(row[0]), int(row[1]))


def next_batch(tx: Tx, embedder: str) -> Batch | None:
    """Passages that have no vector of this embedder yet: at most as many as fill a row."""
    row = tx.one(_pending, name=embedder)
    if row is None:
        return None
    agent_id, after = row
    last = (after // VECTORS_IN_A_ROW + 1) * VECTORS_IN_A_ROW
    rows = tx.all(_texts, agent_id=agent_id, after=after, last=last)
    texts = tuple(
        "" if kind == "forgotten" else f"{name or speaker or ''}: {text}" for kind, name, speaker, text in rows
    )
    return Batch(agent_id, after + 1, texts)


_put = insert(vectors).values(
    agent_id=bindparam("agent_id"),
    embedder=bindparam("embedder"),
    first=bindparam("first"),
    dimensions=bindparam("dimensions"),
    codes=bindparam("codes", type_=LargeBinary()),
)
_keep = statement(
    _put.on_conflict_do_update(index_elements=["agent_id", "embedder", "first"], set_={"codes": _put.excluded.codes})
)
_row = statement(
    select(vectors.c.codes).where(
        vectors.c.agent_id == bindparam("agent_id"),
        vectors.c.embedder == bindparam("embedder"),
        vectors.c.first == bindparam("first"),
    )
)
_cursor = statement(
    select(recalls.c.embedder, recalls.c.embedded, recalls.c.passages)
    .where(recalls.c.agent_id == bindparam("agent_id"))
    .with_for_update()
)
_move = statement(
    update(recalls)
    .where(recalls.c.agent_id == bindparam("agent"))
    .values(embedder=bindparam("name"), embedded=bindparam("last"))
)
_drop_others = statement(
    delete(vectors).where(vectors.c.agent_id == bindparam("agent"), vectors.c.embedder != bindparam("name"))
)
_is_forgotten = statement(
    select(passages.c.number).where(
        passages.c.agent_id == bindparam("agent_id"),
        passages.c.number == bindparam("number"),
        passages.c.kind == "forgotten",
    )
)


def keep(tx: Tx, embedder: str, batch: Batch, codes: Sequence[bytes]) -> bool:
    """The batch has its vectors, unless someone else was faster. What was forgotten meanwhile has none."""
    row = tx.one(_cursor, agent_id=batch.agent_id)
    if row is None or (row[1] if row[0] == embedder else 0) != batch.first - 1:
        return False
    dimensions = len(codes[0]) if codes else 0
    kept = [
        bytes(dimensions) if tx.one(_is_forgotten, agent_id=batch.agent_id, number=number) else code
        for number, code in enumerate(codes, start=batch.first)
    ]
    first = (batch.first - 1) // VECTORS_IN_A_ROW * VECTORS_IN_A_ROW + 1
    before = tx.one(_row, agent_id=batch.agent_id, embedder=embedder, first=first)
    joined = (before[0] if before else b"")[: (batch.first - first) * dimensions] + b"".join(kept)
    tx.run(_keep, agent_id=batch.agent_id, embedder=embedder, first=first, dimensions=dimensions, codes=joined)
    last = batch.first + len(codes) - 1
    tx.run(_move, agent=batch.agent_id, name=embedder, last=last)
    if last >= row[2]:
        tx.run(_drop_others, agent=batch.agent_id, name=embedder)
    return True


async def reindex(db: Database, embedder: Embedder) -> int:
    """Every passage of every agent has a vector of this embedder; gives how many were made.

    Each batch is kept before the next begins: whoever calls this again goes on where it stopped.
    """
    made = 0
    told = time.monotonic()
    while (batch := await db.read(next_batch, embedder.name)) is not None:
        codes = await embedder.embed([text or "-" for text in batch.texts])
        if await db.write(keep, embedder.name, batch, codes):
            made += len(codes)
        if time.monotonic() - told > _TOLD_SECONDS:
            told = time.monotonic()
            far = await db.read(progress, embedder.name)
            log_line.info("embedding what can be recalled", embedder=embedder.name, done=far.done, all=far.all)
    return made


@asynccontextmanager
async def following(db: Database, embedder: Embedder, clock: Clock) -> AsyncGenerator[None]:
    """Inside, passages get their vectors soon after they were written."""

    async def follow() -> None:
        while True:
            try:
                await reindex(db, embedder)
            except Exception as error:  # noqa: BLE001  the loop's boundary: words are still found without vectors
                log_line.warning("embedding failed", embedder=embedder.name, error=repr(error))
                await clock.sleep(_RETRY_SECONDS)
            await clock.sleep(_FOLLOW_SECONDS)

    # No task group: what goes wrong inside is not this task's, and shall be raised as it is.
    task = asyncio.create_task(follow(), name="embedding what is new")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


_all = statement(
    select(vectors.c.first, vectors.c.dimensions, vectors.c.codes)
    .where(vectors.c.agent_id == bindparam("agent_id"), vectors.c.embedder == bindparam("embedder"))
    .order_by(vectors.c.first.desc())
    .limit(MOST_VECTORS // VECTORS_IN_A_ROW)
)


def meaning(tx: Tx, agent_id: AgentId, embedder: str, asked: bytes) -> Meaning | None:
    """How near the agent's passages are to what was asked; None where no vectors are there."""
    rows = tx.all(_all, agent_id=agent_id, embedder=embedder)
    rows = [row for row in rows if row[1] == len(asked)]
    return _nearness(rows, asked) if rows else None


def _nearness(rows: Sequence[tuple[Any, ...]], asked: bytes) -> Meaning:
    import numpy

    size = len(asked)
    numbers = [number for first, _, codes in rows for number in range(first, first + len(codes) // size)]
    matrix = numpy.frombuffer(b"".join(row[2] for row in rows), numpy.int8).reshape(-1, size).astype(numpy.float32)
    question = numpy.frombuffer(asked, numpy.int8).astype(numpy.float32)
    lengths = numpy.sqrt(numpy.einsum("ij,ij->i", matrix, matrix))
    cosines = matrix @ question / numpy.maximum(lengths * numpy.sqrt(question @ question), 1e-9)
    there = lengths > 0
    spread = float(cosines[there].std()) if there.any() else 0.0
    weighed = (
        numpy.where(there, (cosines - cosines[there].mean()) / (spread or 1.0) * _WEIGHT, 0.0)
        if there.any()
        else cosines * 0
    )
    known: dict[int, int] = {number: at for at, number in enumerate(numbers)}
    nearest = numpy.argsort(-weighed, kind="stable")[:NEAREST].tolist()

    def near(wanted: Iterable[int]) -> dict[int, float]:
        # Rounded, so that sums made in another order by another machine do not change the ranking.
        positions = {*nearest, *(known[number] for number in wanted if number in known)}
        return {numbers[at]: round(float(weighed[at]), 6) for at in positions}

    return near


_SAMPLED_ROWS: Final = 8
"""Of which the passages are compared with one another."""


def kinship(
    tx: Tx, agent_id: AgentId, embedder: str, asked: bytes, numbers: Iterable[int], newest: int
) -> dict[int, float]:
    """How much nearer these passages are to what was asked than the agent's passages are to one another on average.

    In standard deviations of that: unlike nearness among the passages, which is always greatest for one of them, it
    says whether any of them has to do with it; and it means the same for embedders whose cosines differ.
    """
    import numpy

    def vectors_at(first: int) -> Any:
        row = tx.one(_row, agent_id=agent_id, embedder=embedder, first=first)
        codes = row[0] if row is not None and len(row[0]) % len(asked) == 0 else b""
        found = numpy.frombuffer(codes, numpy.int8).reshape(-1, len(asked)).astype(numpy.float32)
        return found / numpy.maximum(numpy.sqrt(numpy.einsum("ij,ij->i", found, found)), 1e-9)[:, None]

    rows = max((newest - 1) // VECTORS_IN_A_ROW + 1, 1)
    sampled = sorted({at * rows // _SAMPLED_ROWS for at in range(_SAMPLED_ROWS)})
    some = numpy.concatenate([vectors_at(at * VECTORS_IN_A_ROW + 1) for at in sampled])
    # What is forgotten has no direction; and what was said again and again would tell only how near it is to itself.
    some = numpy.unique(some[some.any(axis=1)], axis=0)
    among = (some @ some.T)[numpy.triu_indices(len(some), 1)]
    if not len(among) or among.std() < 1e-6:
        return {}
    question = numpy.frombuffer(asked, numpy.int8).astype(numpy.float32)
    question /= max(float(numpy.sqrt(question @ question)), 1e-9)
    near: dict[int, float] = {}
    for number in numbers:
        at = (number - 1) % VECTORS_IN_A_ROW
        there = vectors_at(number - at)
        if at < len(there):
            near[number] = float((there[at] @ question - among.mean()) / among.std())
    return near
