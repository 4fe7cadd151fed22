"""Memory items: each stored once, with its sources and its owner.

Texts that differ only in punctuation are the same item; with an embedder, so are texts with the same meaning. An
outdated item is linked to the one that replaced it and is no longer found. A forgotten item is not stored again. Each
change is recorded (`memory/changes.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import BigInteger, bindparam, case, delete, select
from sqlalchemy.dialects.postgresql import insert

from denizen.consciousness.recall.postings import shape
from denizen.consciousness.recall.terms import count_terms
from denizen.errors import InvalidInput, NotFound
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId, new_id
from denizen.inbox.sources import Source
from denizen.memory import changes
from denizen.memory.audience import Owner
from denizen.memory.changes import MemoryChange
from denizen.memory.contradictions import contradiction
from denizen.memory.policy import Scope
from denizen.spaces.quotes import spelled
from denizen.storage.database import (
    Statement,
    Tx,
    columns,
    delete_where,
    insert_ignore,
    select_where,
    statement,
    storable,
    update_where,
    value,
    values,
)
from denizen.storage.schema import kept_out, memories, memory_owners, memory_sources, memory_terms

Outcome = Literal["new", "known", "same meaning", "again", "superseding", "kept out"]
"""What happened to a candidate."""

SAME_MEANING: Final = 0.93
"""Two items whose vectors are at least this near say the same."""
_COMPARED: Final = 200
"""How many of an owner's newest items a new one is compared with by vector."""
COUNTED: Final = 0
"""Index rows with this number hold the count of items in which a term occurs."""
SNAPSHOT: Final = "snapshot"


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something to remember."""

    category: str
    text: str
    sources: tuple[str, ...]
    """The ids of the messages that say it."""
    confidence: int = 100
    replaces: tuple[str, ...] = ()
    """The texts of the items that it replaces."""
    vector: bytes | None = None
    outside: bool = False
    """Whether it is based on text from outside."""


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory as it is stored."""

    id: str
    what: Candidate
    created_at: int
    updated_at: int
    kind: str = "item"
    document: str | None = None
    """Of a snapshot: its JSON."""
    embedder: str = ""
    """The embedder that made its vector."""
    uses: int = 0
    used_at: int | None = None
    superseded_by: str | None = None
    changes: tuple[MemoryChange, ...] = ()
    """Its recorded changes, the oldest first."""


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A stored memory, as it is read."""

    number: int
    id: str
    organization_id: OrganizationId
    scope: Scope
    owner: str
    space_id: SpaceId
    """Where it was learned."""
    user_id: EntityId | None
    agent_id: AgentId | None
    kind: str
    category: str
    text: str
    confidence: int
    """In per cent."""
    sources: tuple[str, ...]
    uses: int
    used_at: int | None
    superseded_by: str | None
    created_at: int
    updated_at: int
    outside: bool = False
    """Whether it is based on text from outside."""

    @property
    def source(self) -> Source | None:
        """The source of its text if that is from outside. A memory that is not in our database counts as such."""
        return MEMORY if self.outside or self.number <= 0 else None


MEMORY: Final = Source("memory", "long-term memory")

COLUMNS: Final = columns(
    memories,
    "number, id, organization_id, scope, owner, space_id, user_id, agent_id, kind, category, "
    "text, confidence, sources, uses, used_at, superseded_by, created_at, updated_at, outside",
)


def as_remembered(row: Sequence[Any]) -> MemoryItem:
    *learned, sources, uses, used_at, superseded_by, created_at, updated_at, outside = row
    used: tuple[Any, ...] = (uses, used_at, superseded_by, created_at, updated_at, bool(outside))
    fields: tuple[Any, ...] = (*learned, tuple(json.loads(sources)), *used)
    return MemoryItem(*fields)


def hash_of(owner: str, text: str) -> str:
    """Returns the hash of a text, keyed by its owner. The text cannot be read from it."""
    words = " ".join(spelled(text)) or " ".join(text.split())
    return hashlib.blake2b(words.encode(), digest_size=16, key=owner[-64:].encode()[-64:]).hexdigest()


def keeping_out(tx: Tx, owner: str) -> Callable[[str], bool]:
    """Returns a function that tells whether the owner has forgotten this text."""
    if tx.one(_keeps_any_out, owner=owner) is None:
        return lambda _text: False
    return lambda text: tx.one(_is_kept_out, owner=owner, hash=hash_of(owner, text)) is not None


_HASHES: Final = [f"h{at}" for at in range(60)]
_IDS: Final = [f"i{at}" for at in range(60)]
_is_wanted = [bindparam(name, type_=memories.c.hash.type) for name in _HASHES]
_known_rows = columns(memories, "hash, number, sources, confidence, superseded_by, text, id")
_known = select_where(memories, _known_rows, "owner, hash")
_all_known = select_where(memories, _known_rows, "owner", memories.c.hash.in_(_is_wanted))
_all_kept_out = select_where(kept_out, "hash", "owner", kept_out.c.hash.in_(_is_wanted))
_is_kept_out = select_where(kept_out, "owner", "owner, hash")
_keeps_any_out = select_where(kept_out, "owner", "owner", limit=1)
_keep_out = insert_ignore(kept_out, "owner, hash, created_at")
_INSERTED: Final = (
    *("id", "organization_id", "scope", "owner", "space_id", "user_id", "agent_id", "kind", "category", "text"),
    *("document", "hash", "confidence", "sources", "length", "uses", "used_at", "superseded_by", "embedder", "vector"),
    *("outside", "created_at", "updated_at"),
)
_add = statement(
    insert(memories)
    .values({name: bindparam(name, type_=memories.c[name].type) for name in _INSERTED})
    .returning(memories.c.number)
)
_touch = update_where(
    memories,
    "number",
    set_="sources, updated_at",
    confidence=case(
        (memories.c.confidence > bindparam("sure", type_=BigInteger()), memories.c.confidence),
        else_=bindparam("sure", type_=BigInteger()),
    ),
)
_supersede = update_where(memories, "number", set_="superseded_by")
_revive = update_where(memories, "number", superseded_by=None)
_add_source = insert_ignore(memory_sources, "message_id, number")
_add_term = insert_ignore(memory_terms, "owner, term, number, shape")
_count = insert(memory_terms).values(
    owner=bindparam("owner"), term=bindparam("term"), number=COUNTED, shape=bindparam("by")
)
_count_term = statement(
    _count.on_conflict_do_update(
        index_elements=["owner", "term", "number"], set_={"shape": memory_terms.c.shape + _count.excluded.shape}
    )
)
_terms_of = select_where(memory_terms, "term", "number")
_drop_terms = delete_where(memory_terms, "number")
_drop_unused = statement(
    delete(memory_terms).where(
        memory_terms.c.owner == bindparam("whose"),
        memory_terms.c.term == bindparam("word"),
        memory_terms.c.number == COUNTED,
        memory_terms.c.shape <= 0,
    )
)
_owns = insert(memory_owners).values(owner=bindparam("owner"), items=bindparam("items"), length=bindparam("length"))
_measure = statement(
    _owns.on_conflict_do_update(
        index_elements=["owner"],
        set_={
            "items": memory_owners.c["items"] + _owns.excluded["items"],
            "length": memory_owners.c.length + _owns.excluded.length,
        },
    )
)
_vectors = select_where(
    memories,
    "number, vector, text",
    "owner, category, embedder",
    memories.c.superseded_by.is_(None),
    memories.c.vector.is_not(None),
    order_by="number desc",
    limit=_COMPARED,
)
_one = select_where(memories, COLUMNS, "number")


class _KnownMemory(NamedTuple):
    """A row of `_known_rows`."""

    hash: str
    number: int
    sources: str
    confidence: int
    superseded_by: str | None
    text: str
    id: str


def _find_known(tx: Tx, owner: str, hashed: str) -> _KnownMemory | None:
    row = tx.one(_known, owner=owner, hash=hashed)
    return None if row is None else _KnownMemory(*row)


def remember(
    tx: Tx, owner: Owner, space_id: SpaceId, candidates: Iterable[Candidate], embedder: str = "", model: str = ""
) -> Counter[Outcome]:
    """Stores each candidate, which this model wrote, once for this owner; returns how many had which outcome."""
    done: Counter[Outcome] = Counter()
    key = owner.key
    # The same words twice in one pass are one candidate.
    by_hash = {hash_of(key, storable(each.text)): each for each in candidates}
    hashes = list(by_hash)
    index = _Index(tx, key)
    if hashes:
        # Held until the commit: another conversation of the same owner may be summarized at the same moment.
        tx.run(_measure, owner=key, items=0, length=0)
    for at in range(0, len(hashes), len(_HASHES)):
        some = hashes[at : at + len(_HASHES)]
        asked = {name: some[n] if n < len(some) else None for n, name in enumerate(_HASHES)}
        unwanted = set(values(tx, _all_kept_out, owner=key, **asked))
        known = {row.hash: row for row in map(_KnownMemory._make, tx.all(_all_known, owner=key, **asked))}
        for hashed in some:
            if hashed in unwanted:
                done["kept out"] += 1
            elif hashed in known:
                done[_know(tx, index, known[hashed], by_hash[hashed], model)] += 1
            else:
                done[_learn(tx, index, owner, space_id, by_hash[hashed], hashed, (embedder, model))] += 1
    index.settle()
    return done


def _know(tx: Tx, index: _Index, known: _KnownMemory, what: Candidate, model: str) -> Outcome:
    """Records a candidate that is stored already; revives it if it was superseded and somebody has said it again.

    A pass carries over what was known before: that alone does not count as said again.
    """
    reasons = _merge(tx, known.number, known.sources, known.confidence, what)
    if not reasons:
        return "known"
    outdated = known.superseded_by is not None
    if outdated:
        _revive_item(tx, index, known.hash, known.number, known.text)
    replaced = _take_place(tx, index, what, known.number, known.id)
    kind = "said_again" if outdated else "confirmed"
    changes.record(tx, known.number, [MemoryChange(kind, known.text, None, model, replaced, reasons)])
    return "again" if outdated else "known"


def _revive_item(tx: Tx, index: _Index, hashed: str, number: int, text: str) -> None:
    tx.run(_revive, number=number)
    index.add(number, count_terms(text))
    index.gone.discard(hashed)


def _learn(
    tx: Tx,
    index: _Index,
    owner: Owner,
    space_id: SpaceId,
    what: Candidate,
    hashed: str,
    made_by: tuple[str, str],
) -> Outcome:
    embedder, model = made_by
    near = _same_meaning(tx, owner.key, what, embedder)
    if near is not None:
        found = tx.one(_one, number=near)
        assert found is not None
        reasons = _merge(tx, near, found[12], found[11], what)
        if reasons:
            changes.record(tx, near, [MemoryChange("confirmed", found[10], None, model, sources=reasons)])
        return "same meaning"
    number, id, text = _add_item(tx, index, owner, space_id, what, hashed, embedder)
    replaced = _take_place(tx, index, what, number, id)
    changes.record(tx, number, [MemoryChange("learned", text, None, model, replaced, what.sources)])
    return "superseding" if replaced else "new"


def _add_item(
    tx: Tx, index: _Index, owner: Owner, space_id: SpaceId, what: Candidate, hashed: str, embedder: str
) -> tuple[int, str, str]:
    text = storable(what.text)
    counts = count_terms(text)
    new = StoredMemory(
        new_id(), replace(what, text=text), tx.now, tx.now, embedder="" if what.vector is None else embedder
    )
    number = _insert(tx, owner, space_id, new, hashed, sum(counts.values()))
    index.add(number, counts)
    return number, new.id, text


def _merge(tx: Tx, number: int, sources: str, confidence: int, what: Candidate) -> tuple[str, ...]:
    """Adds sources to an existing item; returns those that are new."""
    before = json.loads(sources)
    merged = list(dict.fromkeys([*before, *what.sources]))
    if merged == before and what.confidence <= confidence:
        return ()
    tx.run(_touch, number=number, sources=json.dumps(merged), sure=what.confidence, updated_at=tx.now)
    _rest_on(tx, number, what.sources)
    return tuple(merged[len(before) :])


def _rest_on(tx: Tx, number: int, sources: Iterable[str]) -> None:
    tx.many(_add_source, [{"message_id": each, "number": number} for each in sources])


def _same_meaning(tx: Tx, owner: str, what: Candidate, embedder: str) -> int | None:
    if what.vector is None or not embedder:
        return None
    replaced = {hash_of(owner, each) for each in what.replaces}
    best, nearest = SAME_MEANING, None
    for number, vector, text in tx.all(_vectors, owner=owner, category=what.category, embedder=embedder):
        near = nearness(what.vector, vector)
        # Similar texts may contradict each other: tea at four, tea at five.
        if near >= best and contradiction(what.text, text) is None and hash_of(owner, text) not in replaced:
            best, nearest = near, number
    return nearest


def nearness(one: bytes, other: bytes) -> float:
    """The cosine of two vectors; 0 where they are not alike."""
    import numpy

    a, b = (numpy.frombuffer(each, numpy.int8).astype(numpy.float32) for each in (one, other))
    if a.shape != b.shape:
        return 0.0
    return float(a @ b / (float(numpy.linalg.norm(a) * numpy.linalg.norm(b)) or 1.0))


def _insert(tx: Tx, owner: Owner, space_id: SpaceId, new: StoredMemory, hashed: str, length: int) -> int:
    what = new.what
    number = value(
        tx,
        _add,
        id=new.id,
        organization_id=owner.organization_id,
        scope=owner.scope,
        owner=owner.key,
        space_id=space_id,
        user_id=owner.user_id,
        agent_id=owner.agent_id,
        kind=new.kind,
        category=what.category,
        text=what.text,
        document=new.document,
        hash=hashed,
        confidence=what.confidence,
        sources=json.dumps(list(what.sources)),
        length=length,
        uses=new.uses,
        used_at=new.used_at,
        superseded_by=new.superseded_by,
        embedder=new.embedder,
        vector=what.vector,
        outside=int(what.outside),
        created_at=new.created_at,
        updated_at=new.updated_at,
    )
    assert number is not None
    _rest_on(tx, number, what.sources)
    return number


def restore(tx: Tx, owner: Owner, space_id: SpaceId, brought: StoredMemory) -> bool:
    """Stores an imported memory as it was. Returns False, and changes nothing, if the owner has it already or has
    forgotten it.
    """
    hashed = SNAPSHOT if brought.kind == SNAPSHOT else hash_of(owner.key, brought.what.text)
    if tx.one(_known, owner=owner.key, hash=hashed) or tx.one(_is_kept_out, owner=owner.key, hash=hashed):
        return False
    counts = count_terms(brought.what.text)
    number = _insert(tx, owner, space_id, brought, hashed, sum(counts.values()))
    changes.record(tx, number, [each for each in brought.changes if hash_of(owner.key, each.text) == hashed])
    if brought.kind != SNAPSHOT and brought.superseded_by is None:
        index = _Index(tx, owner.key)
        index.add(number, counts)
        index.settle()
    return True


def keep_out(tx: Tx, owner: str, hashed: str, at: int) -> None:
    """Keeps whatever has this hash from being stored."""
    tx.run(_keep_out, owner=owner, hash=hashed, created_at=at)


class _Index:
    """The search index of an owner's items. `settle` writes the number of items of each term once."""

    def __init__(self, tx: Tx, owner: str) -> None:
        self.owner = owner
        self.gone: set[str] = set()
        """The hashes of items that are known to be superseded."""
        self._tx = tx
        self._terms: Counter[str] = Counter()
        self._items = self._length = 0

    def add(self, number: int, counts: Mapping[str, int]) -> None:
        """Adds the item with these terms."""
        length = sum(counts.values())
        self._tx.many(
            _add_term,
            [
                {"owner": self.owner, "term": term, "number": number, "shape": shape(count, length)}
                for term, count in counts.items()
            ],
        )
        self._change(counts, sum(counts.values()), 1)

    def remove(self, number: int, counts: Mapping[str, int]) -> None:
        """Removes the item, which has these terms."""
        # As they are stored: another version may have made other terms of the same text.
        terms = values(self._tx, _terms_of, number=number)
        if self._tx.run(_drop_terms, number=number) or not counts:
            self._change(terms, sum(counts.values()), -1)

    def _change(self, terms: Iterable[str], length: int, by: int) -> None:
        for term in terms:
            self._terms[term] += by
        self._items += by
        self._length += by * length

    def settle(self) -> None:
        """Writes the changed counts, in the order of the terms: two writers in different orders would deadlock."""
        changed = sorted(term for term, by in self._terms.items() if by)
        self._tx.many(_count_term, [{"owner": self.owner, "term": term, "by": self._terms[term]} for term in changed])
        # A forgotten word leaves the index altogether: it must not stay with a count of zero.
        fewer = [term for term in changed if self._terms[term] < 0]
        self._tx.many(_drop_unused, [{"whose": self.owner, "word": term} for term in fewer])
        if self._items or self._length:
            self._tx.run(_measure, owner=self.owner, items=self._items, length=self._length)


def _take_place(tx: Tx, index: _Index, what: Candidate, number: int, id: str) -> tuple[str, ...]:
    """Links the items that this one replaces to it, and takes them out of the index; returns their ids."""
    replaced: list[str] = []
    for hashed in {hash_of(index.owner, text): None for text in what.replaces}:
        known = None if hashed in index.gone else _find_known(tx, index.owner, hashed)
        if known is None or known.number == number:
            continue
        index.gone.add(hashed)
        if known.superseded_by is None:
            tx.run(_supersede, number=known.number, superseded_by=id)
            index.remove(known.number, count_terms(known.text))
            replaced.append(known.id)
    return tuple(replaced)


_reword = update_where(memories, "number", set_="text")


@dataclass(frozen=True, slots=True)
class Correction:
    """The corrected text of a memory, with its vector if there is an embedder."""

    text: str
    vector: bytes | None = None
    embedder: str = ""
    by_id: EntityId | None = None
    kind: Literal["corrected", "reverted"] = "corrected"


def correct(tx: Tx, owner: Owner, memory: MemoryItem, correction: Correction) -> MemoryItem:
    """Corrects the memory; the old text is linked to the new one and is no longer found."""
    key, text = owner.key, storable(correction.text)
    hashed = hash_of(key, text)
    if tx.one(_is_kept_out, owner=key, hash=hashed) is not None:
        raise InvalidInput("This text was forgotten earlier and cannot be stored again. Use different words.")
    what = Candidate(memory.category, text, memory.sources, 100, (memory.text,), correction.vector)
    known, index = _find_known(tx, key, hashed), _Index(tx, key)
    if known is None:
        number, id, _ = _add_item(tx, index, owner, memory.space_id, what, hashed, correction.embedder)
    else:
        number, id = known.number, known.id
        # The same words, perhaps spelled differently.
        tx.run(_reword, number=number, text=text)
        if known.superseded_by is not None:
            _revive_item(tx, index, hashed, number, text)
    replaced = _take_place(tx, index, what, number, id)
    index.settle()
    if known is None or replaced or known.superseded_by is not None or known.text != text:
        changes.record(tx, number, [MemoryChange(correction.kind, text, correction.by_id, replaced=replaced)])
    return get(tx, id)


_resnap = update_where(
    memories,
    "number",
    set_="text, document, updated_at",
    outside=case((bindparam("from_outside", type_=BigInteger()) == 1, 1), else_=memories.c.outside),
)


def snapshot(tx: Tx, owner: Owner, space_id: SpaceId, summary: str, document: str, *, outside: bool = False) -> None:
    """Replaces the conversation's snapshot. Snapshots are not searched: the summary is in the prompt anyway."""
    summary = storable(summary)
    known = _find_known(tx, owner.key, SNAPSHOT)
    if known is None:
        what = Candidate(SNAPSHOT, summary, (), outside=outside)
        new = StoredMemory(new_id(), what, tx.now, tx.now, kind=SNAPSHOT, document=storable(document))
        _insert(tx, owner, space_id, new, SNAPSHOT, sum(count_terms(summary).values()))
        return
    new = {"text": summary, "document": storable(document), "from_outside": int(outside)}
    tx.run(_resnap, number=known.number, **new, updated_at=tx.now)


_document = select_where(memories, "document", "number")


def take_out_of_snapshot(tx: Tx, space_id: str, left: Callable[[str, str], tuple[str, str]]) -> int:
    """Changes the conversation's snapshot to what `left` makes of its summary and document; returns 1 if it has
    changed.
    """
    known = _find_known(tx, f"conversation:{space_id}", SNAPSHOT)
    if known is None:
        return 0
    before = known.text, value(tx, _document, number=known.number) or "{}"
    summary, document = left(*before)
    if (summary, document) == before:
        return 0
    return tx.run(_resnap, number=known.number, text=summary, document=document, from_outside=0, updated_at=tx.now)


_drop_snapshot = delete_where(memories, "owner", memories.c.hash == SNAPSHOT)


def drop_snapshot(tx: Tx, space_id: str) -> None:
    """Deletes the conversation's snapshot; the next pass makes another."""
    tx.run(_drop_snapshot, owner=f"conversation:{space_id}")


# Reading

_by_id = select_where(memories, COLUMNS, "id")
_by_ids = statement(
    select(*COLUMNS).where(memories.c.id.in_([bindparam(name, type_=memories.c.id.type) for name in _IDS]))
)
_by_numbers = statement(
    select(*COLUMNS).where(memories.c.number.in_([bindparam(name, type_=memories.c.number.type) for name in _IDS]))
)
_LATEST: Final = 2**62


def get(tx: Tx, id: str) -> MemoryItem:
    row = tx.one(_by_id, id=id)
    if row is None:
        raise NotFound("memory", id)
    return as_remembered(row)


def is_there(tx: Tx, id: str) -> bool:
    return tx.one(_by_id, id=id) is not None


def of_ids(tx: Tx, ids: Iterable[str]) -> list[MemoryItem]:
    """Returns the memories with these ids, superseded ones included."""
    wanted, found = list(ids), list[MemoryItem]()
    for at in range(0, len(wanted), len(_IDS)):
        some = wanted[at : at + len(_IDS)]
        asked = {name: some[n] if n < len(some) else None for n, name in enumerate(_IDS)}
        found += map(as_remembered, tx.all(_by_ids, **asked))
    return found


def find(tx: Tx, numbers: Sequence[int]) -> list[MemoryItem]:
    """Returns the memories with these numbers that are not superseded, in this order."""
    found: dict[int, MemoryItem] = {}
    for at in range(0, len(numbers), len(_IDS)):
        some = numbers[at : at + len(_IDS)]
        asked = {name: some[n] if n < len(some) else None for n, name in enumerate(_IDS)}
        found |= {each.number: each for each in map(as_remembered, tx.all(_by_numbers, **asked))}
    there = (found.get(number) for number in numbers)
    return [each for each in there if each is not None and each.superseded_by is None]


def _page(*where: Any) -> Any:
    return statement(
        select(*COLUMNS)
        .where(*where, memories.c.number < bindparam("before"))
        .order_by(memories.c.number.desc())
        .limit(bindparam("limit"))
    )


_of_owner = _page(memories.c.owner == bindparam("owner"))
_of_organization = _page(memories.c.organization_id == bindparam("organization_id"))
_of_space = _page(memories.c.space_id == bindparam("space_id"))
_of_agent = _page(memories.c.agent_id == bindparam("agent_id"), memories.c.scope == "persona")


def _read_page(tx: Tx, page: Statement, before: int | None, limit: int, **of: str) -> list[MemoryItem]:
    return [as_remembered(row) for row in tx.all(page, **of, before=before or _LATEST, limit=limit)]


def owned(tx: Tx, owner: str, *, before: int | None = None, limit: int = 100) -> list[MemoryItem]:
    """Returns this owner's memories, newest first, superseded ones included."""
    return _read_page(tx, _of_owner, before, limit, owner=owner)


def all_of(tx: Tx, organization_id: str, *, before: int | None = None, limit: int = 100) -> list[MemoryItem]:
    """Returns all memories of the organization, newest first."""
    return _read_page(tx, _of_organization, before, limit, organization_id=organization_id)


def learned_in(tx: Tx, space_id: str, *, before: int | None = None, limit: int = 100) -> list[MemoryItem]:
    """Returns the memories that were learned in this space, of all owners, newest first."""
    return _read_page(tx, _of_space, before, limit, space_id=space_id)


def of_agent(tx: Tx, agent_id: str, *, before: int | None = None, limit: int = 100) -> list[MemoryItem]:
    """Returns what this agent alone remembers about people, newest first."""
    return _read_page(tx, _of_agent, before, limit, agent_id=agent_id)


_use = update_where(memories, "number", set_="used_at", uses=memories.c.uses + 1)


def used(tx: Tx, numbers: Iterable[int]) -> None:
    """Records that these memories were shown to an agent."""
    tx.many(_use, [{"number": number, "used_at": tx.now} for number in numbers])


# Forgetting

_drop = delete_where(memories, "number")
_drop_sources = delete_where(memory_sources, "number")
_hash = select_where(memories, "hash", "number")
_before = select_where(memories, COLUMNS, "superseded_by")
_resting_on = statement(
    select(*COLUMNS)
    .join(memory_sources, memory_sources.c.number == memories.c.number)
    .where(memory_sources.c.message_id == bindparam("message_id"))
)
_of_user = select_where(memories, COLUMNS, "user_id")
_all_there = select_where(memories, COLUMNS, "space_id")
_after = statement(
    select(*COLUMNS, memories.c.document)
    .where(memories.c.organization_id == bindparam("organization_id"), memories.c.number > bindparam("after"))
    .order_by(memories.c.number)
    .limit(500)
)


def forget(tx: Tx, what: Iterable[MemoryItem], *, with_earlier: bool = True) -> list[MemoryItem]:
    """Deletes these memories with those they replaced, and keeps them from coming back; returns all that were
    deleted.
    """
    gone: dict[int, MemoryItem] = {}
    waiting = list(what)
    while waiting:
        each = waiting.pop()
        if each.number in gone:
            continue
        gone[each.number] = each
        if with_earlier:
            waiting += replaced_by(tx, each.id)
    for each in gone.values():
        _forget(tx, each)
    return list(gone.values())


def _forget(tx: Tx, each: MemoryItem) -> None:
    hashed = value(tx, _hash, number=each.number)
    if hashed is not None and hashed != SNAPSHOT:
        keep_out(tx, each.owner, hashed, tx.now)
    if each.superseded_by is None and each.kind != SNAPSHOT:
        index = _Index(tx, each.owner)
        index.remove(each.number, count_terms(each.text))
        index.settle()
    tx.run(_drop_sources, number=each.number)
    tx.run(_drop, number=each.number)


def replaced_by(tx: Tx, id: str) -> list[MemoryItem]:
    """Returns the memories that this one replaced."""
    return [as_remembered(row) for row in tx.all(_before, superseded_by=id)]


def copies_of(tx: Tx, memory: MemoryItem) -> list[MemoryItem]:
    """Returns the copies of the memory with other owners: the same text, from the same messages or from
    copies of them.
    """
    same = hash_of("", memory.text)
    found, waiting = {memory.number: memory}, [memory]
    while waiting:
        for each in resting_on(tx, waiting.pop().sources):
            if each.number not in found and hash_of("", each.text) == same:
                found[each.number] = each
                waiting.append(each)
    del found[memory.number]
    return list(found.values())


def resting_on(tx: Tx, message_ids: Iterable[str]) -> list[MemoryItem]:
    """Returns the memories that were learned from these messages."""
    return [as_remembered(row) for each in message_ids for row in tx.all(_resting_on, message_id=each)]


def of_person(tx: Tx, user_id: str) -> list[MemoryItem]:
    return [as_remembered(row) for row in tx.all(_of_user, user_id=user_id)]


def of_place(tx: Tx, space_id: str) -> list[MemoryItem]:
    return [as_remembered(row) for row in tx.all(_all_there, space_id=space_id)]


def each_of(tx: Tx, organization_id: str) -> Iterator[tuple[MemoryItem, str]]:
    """Yields all memories of the organization, each with its whole text."""
    after = -1
    while rows := tx.all(_after, organization_id=organization_id, after=after):
        for *row, document in rows:
            found = as_remembered(row)
            yield found, f"{found.text}\n{document or ''}"
            after = found.number
