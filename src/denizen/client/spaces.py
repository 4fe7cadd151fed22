"""The organization, its people, spaces, members and messages, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from pydantic import JsonValue

from denizen.client.connection import Connection, keyed, path_to, those_given
from denizen.client.streaming import LifeEvent, StreamEvent, resuming
from denizen.shapes.calls import CallList, CallOut
from denizen.shapes.people import EntityOut, EntityPage, Me, Organization
from denizen.shapes.spaces import (
    MemberOut,
    MessageOut,
    MessagePage,
    PinnedMessages,
    ReadState,
    RetentionOut,
    SearchPage,
    SpaceList,
    SpaceOut,
    StoppedAnswers,
)


class Spaces(Connection):
    """People, spaces and messages."""

    async def organization(self) -> Organization:
        return await self._ask(Organization, "GET", "/api/organization")

    async def change_organization(self, **changes: JsonValue) -> Organization:
        """Changes its `name` or its `settings`; values that are not given stay."""
        return await self._ask(Organization, "PATCH", "/api/organization", json=changes)

    async def entities(self, *, kind: str | None = None, after: str = "", limit: int = 50) -> EntityPage:
        """Returns a page of people, agents and services, by handle."""
        return await self._ask(
            EntityPage, "GET", "/api/entities", params=those_given(kind=kind, after=after, limit=limit)
        )

    async def change_me(self, name: str) -> Me:
        """Changes your own name."""
        return await self._ask(Me, "PATCH", "/api/me", json={"name": name})

    async def entity(self, entity: str) -> EntityOut:
        return await self._ask(EntityOut, "GET", path_to("entities", entity))

    async def create_entity(
        self,
        name: str,
        *,
        kind: str = "human",
        handle: str | None = None,
        role: str | None = None,
        key: str | None = None,
    ) -> EntityOut:
        """Creates a person or a service, in no space and without a token."""
        wanted = those_given(name=name, kind=kind, handle=handle, role=role)
        return await self._ask(EntityOut, "POST", "/api/entities", json=wanted, headers=keyed(key))

    async def change_entity(self, entity: str, *, name: str | None = None, role: str | None = None) -> EntityOut:
        return await self._ask(EntityOut, "PATCH", path_to("entities", entity), json=those_given(name=name, role=role))

    async def remove_entity(self, entity: str) -> None:
        """Removes a person or a service; its messages stay."""
        await self._tell("DELETE", path_to("entities", entity))

    async def spaces(self) -> list[SpaceOut]:
        """Returns the caller's spaces, with their members."""
        found: list[SpaceOut] = []
        after: str | None = ""
        while after is not None:
            page = await self._ask(SpaceList, "GET", "/api/spaces", params=those_given(after=after or None, limit=200))
            found += page.spaces
            after = page.next
        return found

    async def spaces_named(self, name: str) -> list[SpaceOut]:
        """Returns those with exactly this name."""
        return [each for each in await self.spaces() if each.name == name]

    async def space(self, space_id: str) -> SpaceOut:
        return await self._ask(SpaceOut, "GET", path_to("spaces", space_id))

    async def create_space(
        self,
        name: str,
        members: Iterable[str] = (),
        *,
        private: bool = False,
        floor: str | None = None,
        agent_run_limit: int | None = None,
        key: str | None = None,
    ) -> SpaceOut:
        """Creates a space with these members; the caller manages it."""
        wanted = {"name": name, "members": list(members), "private": private}
        wanted |= those_given(floor=floor, agent_run_limit=agent_run_limit)
        return await self._ask(SpaceOut, "POST", "/api/spaces", json=wanted, headers=keyed(key))

    async def change_space(
        self,
        space_id: str,
        *,
        name: str | None = None,
        private: bool | None = None,
        floor: str | None = None,
        agent_run_limit: int | None = None,
    ) -> SpaceOut:
        change = those_given(name=name, private=private, floor=floor, agent_run_limit=agent_run_limit)
        return await self._ask(SpaceOut, "PATCH", path_to("spaces", space_id), json=change)

    async def retention(self, space_id: str, *, days: int | None = None) -> RetentionOut:
        """How long the messages of the space are kept, and how many have expired; with `days`, how many would have."""
        return await self._ask(
            RetentionOut, "GET", path_to("spaces", space_id, "retention"), params=those_given(days=days)
        )

    async def set_retention(self, space_id: str, days: int | None, *, archive: bool = False) -> RetentionOut:
        """Keeps the messages of the space for so many days; 0: for ever; None: the default of the organization."""
        wanted = {"days": days, "archive": archive}
        return await self._ask(RetentionOut, "PUT", path_to("spaces", space_id, "retention"), json=wanted)

    async def let_agents_go_on(self, space_id: str) -> SpaceOut:
        """Lets agents that had stopped waking each other in the space continue; those with unread messages wake."""
        return await self._ask(SpaceOut, "POST", path_to("spaces", space_id, "continue"))

    async def add_member(
        self, space_id: str, entity: str, *, attention: str | None = None, role: str | None = None
    ) -> MemberOut:
        wanted = those_given(entity=entity, attention=attention, role=role)
        return await self._ask(MemberOut, "POST", path_to("spaces", space_id, "members"), json=wanted)

    async def change_member(
        self, space_id: str, entity: str, *, attention: str | None = None, role: str | None = None
    ) -> MemberOut:
        wanted = those_given(attention=attention, role=role)
        return await self._ask(MemberOut, "PATCH", path_to("spaces", space_id, "members", entity), json=wanted)

    async def remove_member(self, space_id: str, entity: str) -> None:
        await self._tell("DELETE", path_to("spaces", space_id, "members", entity))

    async def ask_for_answer(self, space_id: str, agent: str) -> None:
        """Wakes an agent that left a message unanswered there, and asks it for an answer."""
        await self._tell("POST", path_to("spaces", space_id, "agents", agent, "ask-for-answer"))

    async def stop(self, space_id: str, agent: str | None = None) -> list[str]:
        """Stops what the agents of the space, or one of them, write there. Returns those that were writing."""
        given = those_given(agent=agent)
        return (await self._ask(StoppedAnswers, "POST", path_to("spaces", space_id, "stop"), json=given)).agents

    async def mark_read(self, space_id: str, seq: int) -> ReadState:
        """Marks the messages after that number as unread."""
        return await self._ask(ReadState, "PUT", path_to("spaces", space_id, "read"), json={"seq": seq})

    async def transcript(self, space_id: str) -> str:
        """Returns all messages of the space in Markdown."""
        return (await self._tell("GET", path_to("spaces", space_id, "transcript"))).text

    async def messages(
        self, space_id: str, *, after: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[MessageOut]:
        """Returns messages after a number, or the last ones before one, or the newest; oldest first."""
        given = those_given(after=after, before=before, limit=limit)
        return (await self._ask(MessagePage, "GET", path_to("spaces", space_id, "messages"), params=given)).messages

    async def post(self, space_id: str, text: str, *, key: str | None = None, **more: JsonValue) -> MessageOut:
        """Posts a message. Posting again with the same key posts it only once.

        `more`: `reply_to`, `urgent`, `metadata`, `organizationId`, and `files`: the ids of uploads.
        """
        said = {"text": text, **more}
        return await self._ask(
            MessageOut, "POST", path_to("spaces", space_id, "messages"), json=said, headers=keyed(key)
        )

    async def edit_message(self, space_id: str, message_id: str, text: str, *, ask_again: bool = False) -> MessageOut:
        """Changes the text. With `ask_again`, agents that were to answer it are asked to answer it as it is now."""
        path = path_to("spaces", space_id, "messages", message_id)
        return await self._ask(MessageOut, "PATCH", path, json={"text": text, "ask_again": ask_again})

    async def try_answer_again(self, space_id: str, message_id: str) -> None:
        """Asks the agent that wrote this message for another answer; this one stays."""
        await self._tell("POST", path_to("spaces", space_id, "messages", message_id, "try-again"))

    async def react(self, space_id: str, message_id: str, emoji: str) -> MessageOut:
        path = path_to("spaces", space_id, "messages", message_id, "reactions", emoji)
        return await self._ask(MessageOut, "PUT", path)

    async def remove_reaction(self, space_id: str, message_id: str, emoji: str) -> MessageOut:
        path = path_to("spaces", space_id, "messages", message_id, "reactions", emoji)
        return await self._ask(MessageOut, "DELETE", path)

    async def pin(self, space_id: str, message_id: str) -> MessageOut:
        return await self._ask(MessageOut, "PUT", path_to("spaces", space_id, "messages", message_id, "pin"))

    async def unpin(self, space_id: str, message_id: str) -> MessageOut:
        return await self._ask(MessageOut, "DELETE", path_to("spaces", space_id, "messages", message_id, "pin"))

    async def pins(self, space_id: str) -> list[MessageOut]:
        """Returns the pinned messages of the space, oldest first."""
        return (await self._ask(PinnedMessages, "GET", path_to("spaces", space_id, "pins"))).messages

    async def delete_message(self, space_id: str, message_id: str) -> None:
        """Deletes the text of the message; its place stays."""
        await self._tell("DELETE", path_to("spaces", space_id, "messages", message_id))

    async def message(self, message_id: str) -> MessageOut:
        """Returns a message of one of the caller's spaces."""
        return await self._ask(MessageOut, "GET", path_to("messages", message_id))

    async def search(
        self,
        words: str,
        *,
        space: str | None = None,
        author: str | None = None,
        before: str | None = None,
        limit: int = 20,
    ) -> SearchPage:
        """Returns the messages in the caller's spaces with all the words, newest first."""
        asked = those_given(q=words, space=space, author=author, before=before, limit=limit)
        return await self._ask(SearchPage, "GET", "/api/messages/search", params=asked)

    async def calls(self) -> list[CallOut]:
        """Returns the open questions of agents that the caller may answer, oldest first."""
        return (await self._ask(CallList, "GET", "/api/calls")).calls

    async def call(self, call_id: str) -> CallOut:
        """Returns a call in its present state."""
        return await self._ask(CallOut, "GET", path_to("calls", call_id))

    async def answer(self, call_id: str, result: JsonValue) -> CallOut:
        """Answers the call; its agent continues with the result. A second answer is refused: 409."""
        return await self._ask(CallOut, "POST", path_to("calls", call_id, "answer"), json={"result": result})

    async def approve(self, call_id: str, *, times: int = 1, seconds: float = 86_400) -> CallOut:
        """Approves the effect with exactly these arguments: so often, and for so long."""
        return await self.answer(call_id, {"confirmed": True, "times": times, "seconds": seconds})

    async def deny(self, call_id: str) -> CallOut:
        """Denies the effect; its agent is told."""
        return await self.answer(call_id, {"confirmed": False})

    async def stream(self, space_id: str, *, after: int) -> AsyncGenerator[StreamEvent]:
        """Streams the messages of a space after that number, with live text and calls."""

        async def once(last: str | None) -> AsyncGenerator[tuple[str | None, LifeEvent]]:
            at = int(last or 0)
            async with aclosing(self._events(path_to("spaces", space_id, "stream"), str(at))) as events:
                async for _, event in events:
                    if isinstance(event, MessageOut):
                        if event.seq <= at:
                            continue
                        if event.seq > at + 1:
                            return  # One is missing: the next connection has it.
                        at = event.seq
                    yield str(at), event

        async with aclosing(resuming(once, str(after), self._clock)) as events:
            async for event in events:
                if isinstance(event, StreamEvent):
                    yield event

    async def stream_everything(self, *, after: str | None = None) -> AsyncGenerator[LifeEvent]:
        """Streams every message and event of all the caller's spaces."""

        def once(last: str | None) -> AsyncGenerator[tuple[str | None, LifeEvent]]:
            return self._events("/api/stream", last)

        async with aclosing(resuming(once, after, self._clock)) as events:
            async for event in events:
                yield event
