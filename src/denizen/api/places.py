"""Who is here, where they meet, and what they say to each other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from denizen.access import people
from denizen.agents import space_statuses
from denizen.agents.space_statuses import ShownStatus
from denizen.api.wiring import Who, Wiring, id_of
from denizen.errors import OutcomeUnknown
from denizen.forgetting import changing
from denizen.ids import AgentId, EntityId, MessageId, OrganizationId, SpaceId, new_id
from denizen.panel import rounds
from denizen.spaces import ask_again, directory, leaving, posting, reading, searching
from denizen.spaces import floor as floor_rule
from denizen.spaces.directory import Attention, Entity, Floor, Member, Organization, Space, SpaceKind
from denizen.spaces.handles import handle_from
from denizen.spaces.posting import Draft, Message, Posted
from denizen.spaces.searching import Cursor, Found, Wanted, Words
from denizen.storage.database import Tx
from denizen.tools import calls


class Places(Wiring):
    """People, spaces and messages."""

    async def create_organization(self, name: str) -> Organization:
        return await self.db.write(directory.create_organization, name)

    async def create_person(
        self, name: str, *, handle: str | None = None, organization: Organization | OrganizationId | None = None
    ) -> Entity:
        """Someone who talks to agents. Without a handle, one is made from the name."""
        home = await self._organization(organization)
        return await self.db.write(
            directory.create_entity, home, "human", name=name, handle=handle or handle_from(name)
        )

    async def find(self, handle: str, *, organization: Organization | OrganizationId | None = None) -> Entity:
        """Whoever has this handle."""
        home = await self._organization(organization)
        return await self.db.read(directory.find_entity, home, handle)

    async def create_space(
        self,
        name: str,
        members: Iterable[Who] = (),
        *,
        kind: SpaceKind = "conversation",
        private: bool = False,
        floor: Floor = directory.DEFAULT_FLOOR,
        agent_run_limit: int = directory.AGENT_RUN_LIMIT,
        organization: Organization | OrganizationId | None = None,
    ) -> Space:
        """A new space with these members in it. `floor` says which agents take up what is said: all, addressed, one."""
        joining = [id_of(each) for each in members]
        home = await self._organization(organization)
        settings = {"kind": kind, "private": private, "floor": floor, "agent_run_limit": agent_run_limit}
        return await self.db.write(_create_space, home, name, joining, **settings)

    async def set_floor(self, space: Space | SpaceId, floor: Floor) -> None:
        """From now on these agents take up what is said in the space: all, addressed, one."""
        await self.db.write(directory.set_floor, id_of(space), floor)

    async def set_agent_run_limit(self, space: Space | SpaceId, limit: int) -> None:
        """After so many messages with which agents woke each other, they do so no more there; 0: no limit."""
        await self.db.write(directory.set_agent_run_limit, id_of(space), limit)

    async def let_agents_go_on(self, space: Space | SpaceId, by: Who | EntityId) -> None:
        """Agents that had stopped waking each other in the space may go on, and those with unread messages wake."""
        await self.db.write(floor_rule.let_agents_go_on, id_of(space), id_of(by))

    async def get_space(self, space: Space | SpaceId) -> Space:
        """The space as it is now, with its floor and whether its agents have stopped."""
        return await self.db.read(directory.get_space, id_of(space))

    async def join(self, space: Space | SpaceId, who: Who | EntityId, *, attention: Attention = "all") -> None:
        await self.db.write(directory.join, id_of(space), id_of(who), attention=attention)

    async def leave(self, space: Space | SpaceId, who: Who | EntityId) -> None:
        await self.db.write(leaving.leave, id_of(space), id_of(who))

    async def attend(self, space: Space | SpaceId, who: Who | EntityId, attention: Attention) -> None:
        """From now on this much of the space reaches the member: all, mentions, none."""
        await self.db.write(directory.attend, id_of(space), id_of(who), attention)

    async def remove_person(self, person: Entity | EntityId) -> None:
        """They, or a service, are here no more: in no space, with no token. What they said stays, under their name."""
        await self.db.write(people.leave, id_of(person))

    async def members(self, space: Space | SpaceId) -> list[Member]:
        return await self.db.read(directory.members, id_of(space))

    async def post(
        self,
        space: Space | SpaceId,
        author: Who | EntityId,
        text: str,
        *,
        id: MessageId | None = None,
        reply_to: MessageId | None = None,
        urgent: bool = False,
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> Posted:
        """The message stands in the space and in every inbox that attends to it when this returns."""
        what = await _draft(text)
        # Known beforehand, so that posting again after an unknown outcome is posting once.
        chosen = id or MessageId(new_id())
        self._remember_cause(chosen)

        async def post() -> Posted:
            return await self.db.write(
                post_message,
                id_of(space),
                id_of(author),
                what,
                id=chosen,
                reply_to=reply_to,
                urgent=urgent,
                metadata=metadata,
            )

        try:
            return await post()
        except OutcomeUnknown:
            return await post()

    async def edit_message(self, message: Message | Posted | MessageId, text: str, *, by: Who | EntityId) -> Message:
        """The message says this now; agents that have read it are told once. Its author may, or who runs the space."""
        return await self.db.write(changing.edit_message, id_of(message), id_of(by), await _draft(text))

    async def delete_message(self, message: Message | Posted | MessageId, *, by: Who | EntityId) -> Message:
        """The text of the message is gone, its place stays; agents that have read it are told once."""
        return await self.db.write(changing.delete_message, id_of(message), id_of(by))

    async def ask_for_answer(self, space: Space | SpaceId, agent: Who | AgentId, by: Who | EntityId) -> None:
        """Wake an agent that left a message unanswered here, and tell it that this person asks for an answer.

        The status that said so goes. Raises `InvalidInput` where the agent owes no answer in this space.
        """
        await self.db.write(ask_again.ask_for_answer, id_of(space), AgentId(id_of(agent)), id_of(by))

    async def messages(self, space: Space | SpaceId, *, after: int = 0, limit: int = 1_000) -> list[Message]:
        return await self.db.read(posting.messages_after, id_of(space), after, limit=limit)

    async def mark_read(self, space: Space | SpaceId, who: Who | EntityId, seq: int) -> reading.Place:
        """They have read up to the message of that number, and not what follows it."""
        return await self.db.write(reading.mark_read, id_of(space), id_of(who), seq)

    async def search(
        self,
        who: Who | EntityId,
        words: str,
        *,
        space: Space | SpaceId | None = None,
        author: Who | EntityId | None = None,
        before: str | None = None,
        limit: int = 20,
    ) -> Found:
        """Messages in their spaces that have all these words, newest first. `before`: where the last one stopped."""
        wanted = Wanted(
            Words(words), None if space is None else id_of(space), None if author is None else id_of(author)
        )
        place = None if before is None else Cursor.read(before)
        return await self.db.read(searching.search, id_of(who), wanted, before=place, limit=limit)

    async def statuses(self, space: Space | SpaceId) -> list[ShownStatus]:
        """Why whoever waits in the space has no answer, for each agent or for the panel; empty where all is well."""
        return await self.db.read(space_statuses.in_space, id_of(space))

    async def transcript(self, space: Space | SpaceId) -> list[str]:
        """The conversation, one line a message: `Noor: Hello.`"""
        return [f"{message.author_name}: {message.text}" for message in await self.messages(space)]


def post_message(
    tx: Tx,
    space_id: SpaceId,
    author_id: EntityId,
    what: Draft,
    *,
    id: MessageId,
    reply_to: MessageId | None,
    urgent: bool,
    metadata: Mapping[str, JsonValue] | None,
) -> Posted:
    """Post a message from outside. In a panel, a person's message also begins a turn."""
    posted = calls.post_or_answer(
        tx, space_id, author_id, what, id=id, reply_to=reply_to, urgent=urgent, metadata=metadata
    )
    if posted.space_kind == "panel":
        rounds.begin_turn_of(tx, space_id, posted, author_id, what.rendered.mentions)
    return posted


async def _draft(text: str) -> Draft:
    # Rendering long Markdown takes its time: not on the event loop.
    return await asyncio.to_thread(posting.draft, text) if len(text) > 2_000 else posting.draft(text)


def _create_space(tx: Tx, home: OrganizationId, name: str, joining: Sequence[EntityId], **settings: Any) -> Space:
    space = directory.create_space(tx, home, name=name, **settings)
    for each in joining:
        directory.join(tx, space.id, each)
    return space
