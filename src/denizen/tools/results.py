"""What outside tools return: text, and files, which are stored for the agent before the call is recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

from denizen.amounts import human_size
from denizen.errors import InvalidInput, QuotaExceeded
from denizen.files import attaching
from denizen.files.attaching import MOST_FILES
from denizen.files.storing import File
from denizen.ids import AgentId, FileId
from denizen.inbox.format import quoted_name
from denizen.storage.database import Tx

if TYPE_CHECKING:
    from denizen.tools.tool import CallIdentity, OutsideTool

_KEYS: Final = UUID("2b0f7f57-3f8e-4d6a-9d4e-6b6f6a5f3c10")
"""Under which a call and the position of a file in its result become the id of the file."""


@dataclass(frozen=True, slots=True)
class ToolFile:
    """A file that a tool returns. The agent is told about it, can read it, and can send it to people.

    ```python
    from denizen import ToolFile, tool

    @tool
    def draw_chart(title: str) -> ToolFile:
        "Draw a chart."
        return ToolFile(b"...", "chart.png")
    ```
    """

    data: bytes
    name: str
    media_type: str | None = None
    """Guessed from its name if missing."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool returns that returns files."""

    text: str
    files: tuple[ToolFile, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call as it is recorded."""

    text: str
    files: tuple[FileId, ...] = ()
    """Uploads of the agent, which it has permanently as soon as the result is recorded."""


StoreFile = Callable[[AgentId, ToolFile, FileId], Awaitable[File]]
"""Uploads a file in the name of the agent, under this id; once, however often it is called."""


async def call(
    tool: OutsideTool, arguments: Mapping[str, Any], identity: CallIdentity, store: StoreFile | None
) -> Result:
    """Call the tool, and store the files that it returns."""
    returned = await tool.call(arguments, identity)
    if isinstance(returned, str):
        return Result(returned)
    lines, kept = [returned.text] if returned.text else [], list[FileId]()
    for position, file in enumerate(returned.files):
        line, stored = await _stored(file, identity, position, store)
        lines.append(line)
        kept += [] if stored is None else [stored.id]
    return Result("\n".join(lines), tuple(kept))


async def _stored(
    file: ToolFile, identity: CallIdentity, position: int, store: StoreFile | None
) -> tuple[str, File | None]:
    """The line about a file for the model, and the file, if it could be stored."""
    about = f"file {quoted_name(file.name)} ({human_size(len(file.data))})"
    if store is None or position >= MOST_FILES:
        return f"[{about} was not kept: a result may have {MOST_FILES} files]", None
    try:
        stored = await store(identity.agent_id, file, FileId(str(uuid5(_KEYS, f"{identity.key}:{position}"))))
    except (InvalidInput, QuotaExceeded) as error:
        return f"[{about} was not kept: {error}]", None
    about = f"file {quoted_name(stored.name)} ({stored.media_type}, {human_size(stored.size)})"
    return f'[{about}: id {stored.id}; send_message with files=["{stored.id}"] shows it to people]', stored


def give(tx: Tx, agent_id: AgentId, file_ids: tuple[FileId, ...]) -> None:
    """Let the agent have these uploads of its own permanently, in the transaction that records the result."""
    attaching.give(tx, agent_id, attaching.attachable(tx, agent_id, file_ids))
