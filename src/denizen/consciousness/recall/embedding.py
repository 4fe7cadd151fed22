"""Vectors of passages and of their words: computed after their cycle, stored, and compared with a question's.

They follow the passages by a cursor, so that the work can stop at any time and continues where it was. Vectors of
another embedder stay until all new ones are there, and are then removed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam, case, delete, func, select, update

from denizen.clock import Clock
from denizen.consciousness.recall import wording
from denizen.consciousness.recall.fetching import said
from denizen.consciousness.recall.passages import VECTORS_IN_A_ROW
from denizen.consciousness.recall.wording import Words
from denizen.ids import AgentId
from denizen.models.embedders import Embedder, Reader, TextVectors
from denizen.storage.database import Database, Tx, insert_or_update, select_where, statement, value
from denizen.storage.schema import entities, messages, passages, recalls, vectors, wordings
from denizen.telemetry.logs import get_logger

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

log_line = get_logger(__name__)

_FOLLOW_SECONDS: Final = 5
_RETRY_SECONDS: Final = 55
_TOLD_SECONDS: Final = 10
MOST_VECTORS: Final = 100_000
"""How many vectors, the newest, a question is compared with."""
NEAREST: Final = 300
"""How many passages are candidates only because they are near in meaning."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """How near an agent's passages are to the meaning of a question."""

    embedder: str
    numbers: NDArray[int64]
    """Of all passages that have a vector, ascending."""
    near: NDArray[float64]
    """The nearness of each, in standard deviations; 0 if it is further than most."""
    words: Words | None
    """The words of the question, if the embedder gives their vectors."""

    def of(self, numbers: NDArray[int64]) -> NDArray[float64]:
        """The nearness of these passages; 0 for those without a vector."""
        import numpy

        at = numpy.minimum(numpy.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return numpy.where(self.numbers[at] == numbers, self.near[at], 0.0)

    def nearest(self) -> NDArray[int64]:
        """The passages that are candidates only because of their meaning."""
        import numpy

        return self.numbers[numpy.argsort(-self.near, kind="stable")[:NEAREST]]


@dataclass(frozen=True, slots=True)
class QuestionVectors:
    """The meaning of a question."""

    vector: bytes
    words: Words | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How many passages of all agents are embedded."""

    done: int
    all: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive passages of one agent."""

    agent_id: AgentId
    first: int
    texts: tuple[str, ...]
    """Empty for forgotten passages."""


# With `reads` a passage counts only if its words have vectors too: older ones may lack them.
_read_less = and_(bindparam("reads", type_=recalls.c.worded.type) == 1, recalls.c.worded < recalls.c.embedded)
_done = case((recalls.c.embedder != bindparam("name"), 0), (_read_less, recalls.c.worded), else_=recalls.c.embedded)
_pending = statement(
    select(recalls.c.agent_id, _done).where(_done < recalls.c.passages).order_by(recalls.c.agent_id).limit(1)
)
_progress = statement(select(func.coalesce(func.sum(_done), 0), func.coalesce(func.sum(recalls.c.passages), 0)))
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


def progress(tx: Tx, embedder: str, *, reads: bool = False) -> Progress:
    """How many passages of all agents have a vector of this embedder, and with `reads` of their words; of how many."""
    row = tx.one(_progress, name=embedder, reads=int(reads))
    return Progress(0, 0) if row is None else Progress(*map(int, row))


def next_batch(tx: Tx, embedder: str, *, reads: bool = False) -> Batch | None:
    """Passages without a vector of this embedder, or without vectors of their words: at most as many as fill a row."""
    row = tx.one(_pending, name=embedder, reads=int(reads))
    if row is None:
        return None
    agent_id, after = row
    last = (after // VECTORS_IN_A_ROW + 1) * VECTORS_IN_A_ROW
    rows = tx.all(_texts, agent_id=agent_id, after=after, last=last)
    texts = tuple(
        "" if kind == "forgotten" else f"{name or speaker or ''}: {text}" for kind, name, speaker, text in rows
    )
    return Batch(agent_id, after + 1, texts)


_keep = insert_or_update(vectors, "agent_id, embedder, first, dimensions, codes", set_="codes")
_row = select_where(vectors, "codes", "agent_id, embedder, first")
_cursor = statement(
    select(_done, recalls.c.passages).where(recalls.c.agent_id == bindparam("agent_id")).with_for_update()
)
_same = recalls.c.embedder == bindparam("name")
_last = bindparam("last", type_=recalls.c.embedded.type)
_move = statement(
    update(recalls)
    .where(recalls.c.agent_id == bindparam("agent"))
    .values(
        embedder=bindparam("name"),
        # Where the words are behind, existing vectors are made again.
        embedded=case((and_(_same, recalls.c.embedded > _last), recalls.c.embedded), else_=_last),
        worded=case((bindparam("reads", type_=recalls.c.worded.type) == 1, _last), (_same, recalls.c.worded), else_=0),
    )
)
_drop_others = [
    statement(delete(table).where(table.c.agent_id == bindparam("agent"), table.c.embedder != bindparam("name")))
    for table in (vectors, wordings)
]
_keep_words = insert_or_update(wordings, "agent_id, embedder, number, codes")
_is_forgotten = select_where(passages, "number", "agent_id, number", passages.c.kind == "forgotten")


def keep(tx: Tx, embedder: str, batch: Batch, codes: Sequence[bytes], worded: Sequence[bytes] | None = None) -> bool:
    """Store the vectors of the batch, unless someone else was faster. Passages forgotten meanwhile get none.

    `worded` is what is stored of the words of each passage, from an embedder that reads them.
    """
    reads = int(worded is not None)
    row = tx.one(_cursor, agent_id=batch.agent_id, name=embedder, reads=reads)
    if row is None:
        return False
    embedded, passages_there = row
    if embedded != batch.first - 1:
        return False
    dimensions = len(codes[0]) if codes else 0
    numbers = range(batch.first, batch.first + len(codes))
    gone = {number for number in numbers if tx.one(_is_forgotten, agent_id=batch.agent_id, number=number)}
    kept = [bytes(dimensions) if number in gone else code for number, code in zip(numbers, codes, strict=True)]
    first = (batch.first - 1) // VECTORS_IN_A_ROW * VECTORS_IN_A_ROW + 1
    before: bytes = value(tx, _row, agent_id=batch.agent_id, embedder=embedder, first=first) or b""
    joined = before[: (batch.first - first) * dimensions] + b"".join(kept)
    tx.run(_keep, agent_id=batch.agent_id, embedder=embedder, first=first, dimensions=dimensions, codes=joined)
    whose: dict[str, Any] = {"agent_id": batch.agent_id, "embedder": embedder}
    words = [
        {**whose, "number": number, "codes": code}
        for number, code in zip(numbers, worded or (), strict=False)
        if code and number not in gone
    ]
    if words:
        tx.many(_keep_words, words)
    last = batch.first + len(codes) - 1
    tx.run(_move, agent=batch.agent_id, name=embedder, last=last, reads=reads)
    if last >= passages_there:
        for drop in _drop_others:
            tx.run(drop, agent=batch.agent_id, name=embedder)
    return True


async def reindex(db: Database, embedder: Embedder) -> int:
    """Compute a vector of this embedder for every passage of every agent. Returns how many were made.

    Each batch is stored before the next begins: another call continues where this one stopped.
    """
    made = 0
    told = time.monotonic()
    reads = isinstance(embedder, Reader)
    while (batch := await db.read(next_batch, embedder.name, reads=reads)) is not None:
        texts = [text or "-" for text in batch.texts]
        if isinstance(embedder, Reader):
            readings = await embedder.read(texts)
            codes, worded = [each.vector for each in readings], await asyncio.to_thread(_coded, readings)
        else:
            codes, worded = await embedder.embed(texts), None
        if await db.write(keep, embedder.name, batch, codes, worded):
            made += len(codes)
        if time.monotonic() - told > _TOLD_SECONDS:
            told = time.monotonic()
            far = await db.read(progress, embedder.name, reads=reads)
            log_line.info("embedding what can be recalled", embedder=embedder.name, done=far.done, all=far.all)
    return made


def _coded(readings: Sequence[TextVectors]) -> list[bytes]:
    return [wording.code(each) for each in readings]


@asynccontextmanager
async def following(db: Database, embedder: Embedder, clock: Clock) -> AsyncGenerator[None]:
    """While entered, passages get their vectors soon after they were written."""

    async def follow() -> None:
        while True:
            try:
                await reindex(db, embedder)
            except Exception as error:  # noqa: BLE001  the loop's boundary: words are still found without vectors
                log_line.warning("embedding failed", embedder=embedder.name, error=repr(error))
                await clock.sleep(_RETRY_SECONDS)
            await clock.sleep(_FOLLOW_SECONDS)

    # Not a task group: errors inside the `with` block are not this task's, and must be raised unwrapped.
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


async def ask(embedder: Embedder, question: str) -> QuestionVectors:
    """Embed the question."""
    if isinstance(embedder, Reader):
        (reading,) = await embedder.read([question], asking=True)
        return QuestionVectors(reading.vector, wording.words_of(reading))
    (vector,) = await embedder.embed([question], asking=True)
    return QuestionVectors(vector)


def meaning(tx: Tx, agent_id: AgentId, embedder: str, asked: QuestionVectors) -> Meaning | None:
    """How near the agent's passages are to the question; None if there are no vectors."""
    rows = tx.all(_all, agent_id=agent_id, embedder=embedder)
    rows = [(first, codes) for first, size, codes in reversed(rows) if size == len(asked.vector)]
    return _nearness(embedder, rows, asked) if rows else None


def _nearness(embedder: str, rows: Sequence[tuple[Any, ...]], asked: QuestionVectors) -> Meaning:
    import numpy

    size = len(asked.vector)
    each_row = [numpy.arange(first, first + len(codes) // size, dtype=numpy.int64) for first, codes in rows]
    numbers = numpy.concatenate(each_row)
    matrix = numpy.frombuffer(b"".join(codes for _, codes in rows), numpy.int8).reshape(-1, size).astype(numpy.float32)
    question = numpy.frombuffer(asked.vector, numpy.int8).astype(numpy.float32)
    lengths = numpy.sqrt(numpy.einsum("ij,ij->i", matrix, matrix))
    length = float(numpy.sqrt(numpy.einsum("i,i", question, question)))
    cosines = numpy.einsum("ij,j->i", matrix, question).astype(numpy.float64) / numpy.maximum(lengths * length, 1e-9)
    there = lengths > 0
    near = numpy.zeros(len(numbers))
    if there.any():
        known = cosines[there]
        near[there] = (known - known.mean()) / (float(known.std()) or 1.0)
    # Rounded, so that sums made in another order by another machine do not change the ranking.
    return Meaning(embedder, numbers, numpy.maximum(near, 0.0).round(6), asked.words)


_SAMPLED_ROWS: Final = 8
"""How many rows are sampled to compare passages with one another."""


def kinship(
    tx: Tx, agent_id: AgentId, embedder: str, asked: QuestionVectors, numbers: Iterable[int], newest: int
) -> dict[int, float]:
    """How much nearer these passages are to the question than the agent's passages are to one another on average.

    In standard deviations: unlike nearness among the passages, which is always greatest for one of them, it says
    whether any of them is related; and it means the same for embedders whose cosines differ.
    """
    import numpy

    size = len(asked.vector)

    def vectors_at(first: int) -> Any:
        codes: bytes = value(tx, _row, agent_id=agent_id, embedder=embedder, first=first) or b""
        found = (
            numpy.frombuffer(codes if len(codes) % size == 0 else b"", numpy.int8)
            .reshape(-1, size)
            .astype(numpy.float32)
        )
        return found / numpy.maximum(numpy.sqrt(numpy.einsum("ij,ij->i", found, found)), 1e-9)[:, None]

    rows = max((newest - 1) // VECTORS_IN_A_ROW + 1, 1)
    sampled = sorted({at * rows // _SAMPLED_ROWS for at in range(_SAMPLED_ROWS)})
    some = numpy.concatenate([vectors_at(at * VECTORS_IN_A_ROW + 1) for at in sampled])
    # Forgotten passages have no direction; and repeated ones would only be compared with themselves.
    some = numpy.unique(some[some.any(axis=1)], axis=0)
    among = (some @ some.T)[numpy.triu_indices(len(some), 1)]
    if not len(among) or among.std() < 1e-6:
        return {}
    question = numpy.frombuffer(asked.vector, numpy.int8).astype(numpy.float32)
    question /= max(float(numpy.sqrt(question @ question)), 1e-9)
    near: dict[int, float] = {}
    for number in numbers:
        at = (number - 1) % VECTORS_IN_A_ROW
        there = vectors_at(number - at)
        if at < len(there):
            near[number] = float((there[at] @ question - among.mean()) / among.std())
    return near
