"""Lists, creates and changes the caller's spaces; stops answers, and sets read positions."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID, uuid5

from fastapi import Query

from denizen.access import space_changes
from denizen.access.requesters import find_space
from denizen.agents import fitness, messaging, private_spaces, registry, space_statuses
from denizen.ids import EntityId, SpaceId
from denizen.server.auth import Authenticated, Caller, Person
from denizen.server.idempotency import IdempotencyKey
from denizen.server.router import new_router
from denizen.server.shapes.filling import filled
from denizen.server.shapes.spaces import ReadMark, SpaceChange, SpaceCreate, StopAnswer, space_out
from denizen.shapes.spaces import ReadState, SpaceList, SpaceOut, StoppedAnswers
from denizen.spaces import directory, floor, reading
from denizen.storage.database import Tx, storable

router = new_router()

LONGEST_PAGE: Final = 200
_KEYS: Final = UUID("c1d9a2f4-3b67-4a55-8f0e-2d7c9b1e6a38")
"""Under which idempotency keys become the ids of spaces."""


@router.get("/api/spaces", summary="List your spaces")
async def list_spaces(
    caller: Authenticated,
    after: Annotated[str, Query(max_length=200, description="What `next` of the page before said.")] = "",
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 50,
) -> SpaceList:
    """With their members, and the number of unread messages."""
    return await caller.runtime.db.read(_mine, caller.entity.id, after, limit)


@router.get("/api/spaces/{space_id}", summary="Get a space")
async def get_space(caller: Authenticated, space_id: str) -> SpaceOut:
    return await caller.runtime.db.read(_one, caller, space_id)


@router.post(
    "/api/spaces",
    status_code=201,
    summary="Create a space",
    openapi_extra={"x-who": "people; if the organization's `spaces_by` is `admin`: admins and owners"},
)
async def create_space(caller: Person, wanted: SpaceCreate, key: IdempotencyKey = None) -> SpaceOut:
    """You are its owner, and the given people and agents are members."""
    chosen = None if key is None else SpaceId(str(uuid5(_KEYS, f"{caller.entity.id} {key}")))
    return await caller.runtime.db.write(_create, caller, wanted, chosen)


@router.patch("/api/spaces/{space_id}", summary="Change the name, privacy or floor of a space")
async def change_space(caller: Person, space_id: str, change: SpaceChange) -> SpaceOut:
    """The agents in it are told."""
    return await caller.runtime.db.write(_change, caller, space_id, change)


@router.post(
    "/api/spaces/{space_id}/agents/{agent_id}/ask-for-answer",
    status_code=204,
    summary="Ask an agent for an answer",
)
async def ask_for_answer(caller: Person, space_id: str, agent_id: str) -> None:
    """Wakes an agent that read a message here and did not reply, or reached a limit before it could, and tells it
    that you ask for an answer. The status in the space is removed.
    """
    await caller.write(messaging.ask_for_answer, space_id, agent_id)


@router.post("/api/spaces/{space_id}/stop", summary="Stop the answers of agents in a space")
async def stop_answer(caller: Person, space_id: str, whom: StopAnswer | None = None) -> StoppedAnswers:
    """Ends the model call. The text so far stays, with `stopped` in its metadata, and the agent is told. Its
    answers in other spaces continue. A message that only says "stop" does the same.
    """
    only = None if whom is None else whom.agent
    stopped = await caller.write(messaging.stop_answer, space_id, only)
    return StoppedAnswers(agents=list(stopped))


@router.post("/api/spaces/{space_id}/continue", summary="Let the agents of a space continue")
async def let_agents_go_on(caller: Person, space_id: str) -> SpaceOut:
    """Agents that had stopped waking each other may do so again, and those with unread messages wake."""
    return await caller.runtime.db.write(_continue, space_id, caller.entity.id)


@router.put("/api/agents/{agent_id}/space", summary="Get or create your private space with an agent")
async def private_space(caller: Person, agent_id: str) -> SpaceOut:
    """Creates the space if it does not exist yet. `POST /api/chat` uses it if no space is given. Repeating the
    request changes nothing.
    """
    return await caller.runtime.db.write(_private, caller, agent_id)


@router.put("/api/spaces/{space_id}/read", summary="Set your read position")
async def mark_read(caller: Authenticated, space_id: str, mark: ReadMark) -> ReadState:
    """Messages after that number are unread: a smaller number makes messages unread again."""
    where = SpaceId(storable(space_id))
    place = await caller.runtime.spaces.mark_read(where, caller.entity.id, mark.seq)
    return filled(ReadState, place, space_id=place.space.id)


def _mine(tx: Tx, entity_id: EntityId, after: str, limit: int) -> SpaceList:
    # One more than asked for shows whether there are more.
    found = reading.places_of(tx, entity_id, after=storable(after), limit=limit + 1)
    statuses = space_statuses.in_spaces_of(tx, entity_id, registry.around(tx, entity_id))
    unable = fitness.unable_around(tx, entity_id)
    shown = [space_out(place, there, statuses.get(place.space.id, ()), unable) for place, there in found[:limit]]
    return SpaceList(spaces=shown, next=shown[-1].id if len(found) > limit else None)


def _one(tx: Tx, caller: Caller, space_id: str) -> SpaceOut:
    return _shown(tx, find_space(tx, caller.requester, space_id).id, caller.entity.id)


def _shown(tx: Tx, space_id: SpaceId, entity_id: EntityId) -> SpaceOut:
    """The space as this member finds it."""
    place = reading.place_of(tx, space_id, entity_id)
    statuses, unable = space_statuses.in_space(tx, space_id), fitness.unable_in_space(tx, space_id)
    return space_out(place, directory.members(tx, space_id), statuses, unable)


def _create(tx: Tx, caller: Caller, wanted: SpaceCreate, chosen: SpaceId | None) -> SpaceOut:
    home, me = caller.entity.organization_id, caller.entity.id
    settings = wanted.model_dump(exclude={"name", "members"})
    space = space_changes.create(tx, caller.requester, home, wanted.name, wanted.members, **settings, id=chosen)
    return _shown(tx, space.id, me)


def _change(tx: Tx, caller: Caller, space_id: str, change: SpaceChange) -> SpaceOut:
    space = space_changes.change(tx, caller.requester, space_id, **change.model_dump())
    return _shown(tx, space.id, caller.entity.id)


def _private(tx: Tx, caller: Caller, agent_id: str) -> SpaceOut:
    return _shown(tx, private_spaces.open_private_space(tx, caller.requester, agent_id).id, caller.entity.id)


def _continue(tx: Tx, space_id: str, entity_id: EntityId) -> SpaceOut:
    where = SpaceId(storable(space_id))
    floor.let_agents_go_on(tx, where, entity_id)
    return _shown(tx, where, entity_id)
