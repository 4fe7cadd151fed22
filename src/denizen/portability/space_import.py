"""Imports a space from a file, with its members, its messages and its summaries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from pydantic import JsonValue
from sqlalchemy import bindparam, select

from denizen.access import audit
from denizen.access.operators import is_operator
from denizen.access.requesters import Requester
from denizen.ids import OrganizationId, SpaceId
from denizen.inbox.events import AGAIN
from denizen.memory import documents
from denizen.memory.audience import Owner
from denizen.memory.policy import Policy
from denizen.portability import panels, stance_lines
from denizen.portability.entity_mapping import EntityMapping
from denizen.portability.file_lines import Attaching, Contents, FilesInSource
from denizen.portability.imported import Imported
from denizen.portability.lines import (
    ChunkLine,
    EntityLine,
    FileLine,
    FilePageLine,
    KeptOutLine,
    Line,
    MemoryLine,
    MessageLine,
    OfMemory,
    OfPanel,
    PolicyLine,
    RollingLine,
    SpaceLine,
)
from denizen.portability.memories import MemoryImport
from denizen.portability.panels import Assembling, Board
from denizen.portability.reading import ExportFile, LineChecks, first_line
from denizen.portability.rows import Rows, into, values
from denizen.spaces import directory
from denizen.spaces.handles import check_handle, check_name
from denizen.storage.database import (
    Params,
    Tx,
    insert_ignore,
    insert_into,
    long_running,
    select_where,
    statement,
    update_where,
)
from denizen.storage.schema import advisors, files, memberships, memory_policies, messages, rollings, rounds, spaces

# Checking


def check_space(source: ExportFile) -> frozenset[str]:
    """Checks the file; returns the ids of its messages, advisors and rounds. Raises `ImportInvalid` for an invalid
    line.
    """
    source.check("space")
    first, room = first_line(source, SpaceLine), _Room(source)
    for number, line in source.lines():
        room.check(number, line)
    room.files.end()
    if room.said != first.messages:
        raise source.fault(2, f"it speaks of {first.messages:,} messages, and there are {room.said:,}")
    return room.ids


class _Room:
    """The space read from a file so far: later lines must not contradict it."""

    def __init__(self, source: ExportFile) -> None:
        self._checks = LineChecks(source.fault)
        self.said = 0
        self._space: SpaceLine | None = None
        self._people: set[str] = set()
        self._messages: set[str] = set()
        self._board = Board(source.fault)
        self.files = FilesInSource(source.fault)

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(self._messages) | self._board.ids | self.files.ids

    def check(self, number: int, line: Line) -> None:
        match line:
            case SpaceLine() if number == 2:
                self._space = line
                self._checks.require_valid(number, lambda: check_name(line.name))
            case EntityLine() if not self.said:
                self._checks.require_valid(number, lambda: check_handle(line.handle))
                self._people.add(line.id)
            case MessageLine():
                self._check_message(number, line)
            case _ if isinstance(line, OfPanel):
                is_panel = self._space is not None and self._space.kind == "panel"
                self._checks.require(number, is_panel, "the space is no panel")
                self._board.check(number, line, self._messages, self._people)
            case PolicyLine() | RollingLine() | MemoryLine() | KeptOutLine():
                self._check_memory(number, line)
            case FileLine() | FilePageLine() | ChunkLine():
                here = not isinstance(line, FileLine) or line.message_id in self._messages
                self._checks.require(number, here, "no message of the file has it")
                self.files.check(number, line)
            case _:
                raise self._checks.fault(number, f"a line {line.row!r} does not belong here")

    def _check_message(self, number: int, line: MessageLine) -> None:
        self.said += 1
        self._checks.require(number, line.seq == self.said, f"this should be message {self.said:,}")
        self._checks.require(number, line.author_id in self._people, "nobody of the file has said this")
        self._checks.require(number, line.id not in self._messages, "there was a message of this id before")
        self._messages.add(line.id)

    def _check_memory(self, number: int, line: PolicyLine | RollingLine | OfMemory) -> None:
        match line:
            case PolicyLine():
                self._checks.require_unique(number, line.row, "")
                self._checks.require_valid(number, lambda: Policy.model_validate(line.policy), "it is no policy")
            case RollingLine():
                self._checks.require_unique(number, line.row, line.reader_id)
                known = self._space is not None and line.upto <= self._space.messages
                self._checks.require(number, known, "it sums up what was not said")
                otherwise = "its memory cannot be read"
                self._checks.require_valid(number, lambda: documents.Memory.model_validate(line.memory), otherwise)
            case MemoryLine():
                here = self._space is not None and line.space_id == self._space.id and line.user_id is None
                self._checks.require(number, here and line.scope == "conversation", "this space does not remember it")
                self._checks.require_unique(number, line.row, line.id)
            case KeptOutLine():
                self._checks.require(number, line.user_id is None, "a space keeps nothing of one person")


# Writing

_take_place = update_where(spaces, "id", set_="kind, name, private, floor, agent_run_limit")
_TAKEN: Final = tuple(
    statement(select(table.c.id).where(table.c.id == bindparam("id"))) for table in (messages, advisors, rounds, files)
)
_add_message = into(messages, MessageLine, "space_id")
_add_policy = insert_ignore(memory_policies)
_add_rolling = into(rollings, RollingLine, "space_id")
_set_last = update_where(spaces, "id", set_="last_seq")
_join = insert_into(memberships, "space_id", "entity_id", "role", "attention", "read_seq", "joined_at")
_newest = select_where(messages, "created_at", "space_id", order_by="created_at desc", limit=1)


@long_running
def import_space(
    tx: Tx,
    by: Requester,
    organization_id: OrganizationId,
    source: ExportFile,
    ids: Collection[str],
    contents: Contents,
    *,
    name: str | None = None,
) -> Imported:
    """Imports the space of a checked file, with its messages and members. For owners.

    `ids` are those of its messages, advisors, rounds and files, `contents` those of the files' contents.
    """
    by.require("owner")
    by.require_organization(organization_id)
    first = first_line(source, SpaceLine)
    space_id = _admit(tx, organization_id, first, check_name(name or first.name))
    filling = _Filling(tx, organization_id, first.id, space_id, ids, contents, is_operator(tx, by.actor))
    for _, line in source.lines():
        filling.add(line)
    counts = filling.finish()
    tx.run(_set_last, id=space_id, last_seq=first.messages)
    _seat(tx, space_id, filling.mapping, first.messages)
    audit.record(tx, organization_id, by.actor, "import_file", space_id, kind="space", messages=first.messages)
    return Imported(
        "space",
        space_id,
        name or first.name,
        "",
        counts,
        people=tuple(filling.mapping.people),
        absent=tuple(filling.mapping.absent),
    )


def _admit(tx: Tx, home: OrganizationId, line: SpaceLine, name: str) -> SpaceId:
    """Creates a space without members, or takes the placeholder that an earlier import of an agent made."""
    private = bool(line.private)
    if stance_lines.is_kept_place(tx, home, line.id):
        settings = {"kind": line.kind, "private": int(private), "agent_run_limit": line.agent_run_limit}
        tx.run(_take_place, id=line.id, name=name, floor=line.floor, **settings)
        return SpaceId(line.id)
    return directory.create_space(
        tx,
        home,
        name=name,
        kind=line.kind,
        private=private,
        floor=line.floor,
        agent_run_limit=line.agent_run_limit,
        id=stance_lines.free_id(tx, home, line.id),
    ).id


def _seat(tx: Tx, space_id: SpaceId, mapping: EntityMapping, last: int) -> None:
    newest = tx.one(_newest, space_id=space_id)
    # After all its messages: they are in nobody's inbox, and wake nobody.
    since = max(tx.now, 0 if newest is None else newest[0])
    for at, (line, entity_id) in enumerate(mapping.members()):
        membership = {"role": line.role, "attention": line.attention, "joined_at": since + at}
        tx.run(_join, space_id=space_id, entity_id=entity_id, read_seq=min(line.read_seq, last), **membership)
        directory.enter(tx, "member", space_id, entity_id)


class _Filling:
    """Writes an imported space, under the id that it has here."""

    def __init__(
        self,
        tx: Tx,
        home: OrganizationId,
        old: str,
        space_id: SpaceId,
        ids: Collection[str],
        contents: Contents,
        trusted: bool,
    ) -> None:
        """`trusted`: keeps the file's marks of text from outside; otherwise everything is marked."""
        self._tx = tx
        self._old = old
        self._space_id = space_id
        self._of_file = ids
        self._new_ids: dict[str, str] = {}
        self._rows = Rows(tx)
        self._counts: Counter[str] = Counter()
        self.mapping = EntityMapping(tx, home)
        self._trusted = trusted
        self._people: set[str] = set()
        self._files = Attaching(tx, home, contents)
        self._board = Assembling(tx, home, space_id, self._rows, trusted)
        here, before = Owner("conversation", home, space_id), Owner("conversation", home, SpaceId(old))
        self._memories = MemoryImport(tx, space_id, lambda _line: (here, before), trusted)

    def add(self, line: Line) -> None:
        self._counts[line.row] += 1
        here = {"space_id": self._space_id}
        match line:
            case EntityLine():
                self.mapping.receive(line)
                self._people |= {line.id} if line.kind == "human" else set()
            case MessageLine():
                self._rows.add(_add_message, self._message(line))
            case _ if isinstance(line, OfPanel):
                self._board.add(line, self._own, self.mapping.get)
            case PolicyLine():
                self._tx.run(_add_policy, **values(line), **here)
            case RollingLine():
                own = {"reader_id": self._own(line.reader_id), "outside": line.outside if self._trusted else 1}
                self._rows.add(_add_rolling, values(line) | here | own)
            case MemoryLine() | KeptOutLine():
                self._memories.add(line, self._space_id, self._in_file)
            case FileLine():
                self._files.add(line, self._own(line.id), message_id=self._own(line.message_id or ""))
            case FilePageLine() | ChunkLine():
                self._files.add(line)
            case _:
                pass

    def finish(self) -> dict[str, int]:
        self._rows.write()
        self._files.finish()
        self._board.finish()
        return dict(self._counts)

    def _own(self, old: str) -> str:
        """Returns the id here of something in the file; an unknown id for what is not in the file."""
        if not old or old in panels.VOICES:
            return old
        if old not in self._new_ids:
            stays = self._space_id == self._old and old in self._of_file and not self._is_taken(old)
            # The same space again: its parts get ids of their own, which still refer to each other.
            self._new_ids[old] = old if stays else str(uuid5(NAMESPACE_OID, f"{self._space_id} {old}"))
        return self._new_ids[old]

    def _is_taken(self, id: str) -> bool:
        return any(self._tx.one(each, id=id) is not None for each in _TAKEN)

    def _in_file(self, old: str) -> str | None:
        return self._own(old) if old in self._of_file else None

    def _message(self, line: MessageLine) -> dict[str, Params]:
        return values(line) | {
            "id": self._own(line.id),
            "space_id": self._space_id,
            "author_id": self.mapping[line.author_id],
            "mentions": json.dumps(line.mentions) if line.mentions else None,
            "reply_to": None if line.reply_to is None else self._in_file(line.reply_to),
            "metadata": json.dumps(self._metadata(line)) if line.metadata else None,
            "outside": int(self._is_outside(line)),
            "reactions": self._reactions(line),
        }

    def _metadata(self, line: MessageLine) -> dict[str, JsonValue]:
        """What is known of the message, with the ids that it names as they are here."""
        metadata = dict(line.metadata or {})
        if isinstance(earlier := metadata.get(AGAIN), str):
            metadata[AGAIN] = self._in_file(earlier)
        return metadata

    def _reactions(self, line: MessageLine) -> str | None:
        given = (line.reactions or {}).items()
        who = {emoji: [known for each in ids if (known := self.mapping.get(each))] for emoji, ids in given}
        found = {emoji: ids for emoji, ids in who.items() if ids}
        return json.dumps(found, ensure_ascii=False) if found else None

    def _is_outside(self, line: MessageLine) -> bool:
        if not self._trusted:
            return True
        return line.author_id not in self._people if line.outside is None else bool(line.outside)
