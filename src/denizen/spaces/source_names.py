"""Sources of text from outside, as shown to people: with handles in place of ids."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import bindparam, select

from denizen.ids import AgentId
from denizen.inbox.sources import Source, distinct
from denizen.storage.database import Tx, statement, value
from denizen.storage.schema import agents, entities

# An id that came with a file may belong to someone in another organization.
_handle = statement(
    select(entities.c.handle)
    .join(agents, agents.c.organization_id == entities.c.organization_id)
    .where(entities.c.id == bindparam("id"), agents.c.id == bindparam("agent_id"))
)


def named(tx: Tx, agent_id: AgentId, found: Iterable[Source]) -> tuple[Source, ...]:
    """The sources of text in this agent's mind, each once, with handles in place of ids."""
    known: dict[str, str] = {}
    told: list[Source] = []
    for each in distinct(found):
        if each.kind in ("guest", "agent", "service") and each.name not in known:
            handle = value(tx, _handle, id=each.name, agent_id=agent_id)
            known[each.name] = f"@{handle}" if handle is not None else each.name
        told.append(Source(each.kind, known.get(each.name, each.name)))
    return tuple(told)


def label(found: Iterable[Source] | None) -> str:
    """A short label of the sources of text from outside, such as "from outside: get_page"; empty if there are none."""
    if found is None:
        return ""
    names = dict.fromkeys(each.name or each.kind for each in found)
    return f"from outside: {', '.join(names)}" if names else "made from text from outside"
