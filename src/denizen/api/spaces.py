"""`denizen.spaces`: where people and agents meet, and the messages there."""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from denizen.access import space_changes
from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.agents import messaging, space_statuses
from denizen.agents.space_statuses import ShownStatus
from denizen.api.arguments import flag_of, mapping_of, number_of, text_of, whole_number_of
from denizen.api.files import FileRef, uploaded
from denizen.api.forgetting import forget
from denizen.api.subject import (
    AgentRef,
    EntityRef,
    OrganizationRef,
    SpaceRef,
    Subject,
    id_of,
    ids_of,
    optional_id_of,
    requester_of,
)
from denizen.errors import OutcomeUnknown
from denizen.forgetting import changing, forgetting
from denizen.forgetting.receipts import Receipt
from denizen.ids import AgentId, MessageId, new_id
from denizen.spaces import ask_again as asking
from denizen.spaces import directory, posting, reactions_and_pins, reading, retention, searching
from denizen.spaces import floor as floor_rule
from denizen.spaces.directory import Attention, Entity, Floor, Member, Space, SpaceKind
from denizen.spaces.posting import Message, Posted
from denizen.spaces.reading import ReadPosition
from denizen.spaces.retention import Retention
from denizen.spaces.searching import Cursor, MessageQuery, SearchedWords, SearchResults

MessageRef = Message | Posted | MessageId
"""A message, or its id."""


class Spaces(Subject):
    """Spaces, their members and their messages.

    ```python
    garden = await denizen.spaces.create("Garden", [noor, ada])
    await denizen.spaces.post(garden, noor, "The tomatoes are ripe.")
    assert await denizen.spaces.transcript(garden) == ["Noor: The tomatoes are ripe."]
    ```
    """

    async def create(
        self,
        name: str,
        members: Iterable[EntityRef] = (),
        *,
        kind: SpaceKind = "conversation",
        private: bool = False,
        floor: Floor = directory.DEFAULT_FLOOR,
        agent_run_limit: int = directory.AGENT_RUN_LIMIT,
        organization: OrganizationRef | None = None,
        by: Requester = THIS_PROCESS,
    ) -> Space:
        """Create a space with these members. `floor` says which agents take up what is said: `all`, `addressed` or
        `one`. A requester who is a person is in it as its owner.

        ```python
        office = await denizen.spaces.create("Office", [noor, ada], private=True, floor="all")
        assert [each.entity.name for each in await denizen.spaces.members(office)] == ["Noor", "Ada"]
        ```
        """
        home, joining = (
            await self._runtime.organization_id(organization or by.organization_id),
            ids_of(members, "members"),
        )
        return await self._runtime.db.write(
            space_changes.create,
            by,
            home,
            text_of(name, "name"),
            joining,
            kind=kind,
            private=flag_of(private, "private"),
            floor=floor,
            agent_run_limit=agent_run_limit,
        )

    async def get(self, space: SpaceRef) -> Space:
        """The space as it is now, with its floor and whether its agents have stopped."""
        return await self._runtime.db.read(directory.get_space, id_of(space))

    async def list(self, who: EntityRef) -> builtins.list[Space]:
        """The spaces that they are in.

        ```python
        assert [each.name for each in await denizen.spaces.list(noor)] == ["Kitchen"]
        ```
        """
        return await self._read_entity(who, directory.spaces_of)

    async def set_floor(self, space: SpaceRef, floor: Floor, *, by: Requester = THIS_PROCESS) -> None:
        """Choose which agents take up what is said in the space: `all`, `addressed` or `one`."""
        await self._runtime.db.write(space_changes.change, by, id_of(space), floor=floor)

    async def set_agent_run_limit(self, space: SpaceRef, limit: int, *, by: Requester = THIS_PROCESS) -> None:
        """After so many messages of agents in a row, they no longer wake each other there; 0: no limit."""
        wanted = whole_number_of(limit, "limit")
        await self._runtime.db.write(space_changes.change, by, id_of(space), agent_run_limit=wanted)

    async def set_retention(
        self, space: SpaceRef, days: int | None, *, archive: bool = False, by: Requester = THIS_PROCESS
    ) -> None:
        """Keep the messages of the space for so many days; 0: for ever; None: the default of the organization.

        `denizen up` removes what is older once a day, permanently; `denizen.organizations.remove_expired` does it now.
        With `archive`, messages are written to a file first.

        ```python
        await denizen.spaces.set_retention(kitchen, 90)
        assert (await denizen.spaces.retention(kitchen)).days == 90
        ```
        """
        wanted = None if days is None else Retention(whole_number_of(days, "days"), archive)
        await self._runtime.db.write(space_changes.set_retention, by, id_of(space), wanted)

    async def retention(self, space: SpaceRef) -> Retention:
        """How long the messages of the space are kept."""
        return await self._runtime.db.read(retention.of_space, id_of(space))

    async def let_agents_go_on(self, space: SpaceRef, by: EntityRef) -> None:
        """Let agents that had stopped waking each other in the space continue; those with unread messages wake."""
        await self._runtime.db.write(floor_rule.let_agents_go_on, id_of(space), id_of(by))

    async def join(
        self, space: SpaceRef, who: EntityRef, *, attention: Attention = "all", by: Requester = THIS_PROCESS
    ) -> None:
        """They are a member of the space. `attention` says what reaches them: `all`, `mentions` or `none`."""
        await self._runtime.db.write(space_changes.add_member, by, id_of(space), id_of(who), attention=attention)

    async def leave(self, space: SpaceRef, who: EntityRef, *, by: Requester = THIS_PROCESS) -> None:
        """They are no longer a member of the space. Another person is removed only by those who manage the space."""
        await self._runtime.db.write(space_changes.remove_member, by, id_of(space), id_of(who))

    async def set_attention(
        self, space: SpaceRef, who: EntityRef, attention: Attention, *, by: Requester = THIS_PROCESS
    ) -> None:
        """Choose what of the space reaches the member: `all`, `mentions` or `none`."""
        await self._runtime.db.write(space_changes.change_member, by, id_of(space), id_of(who), attention=attention)

    async def members(self, space: SpaceRef) -> builtins.list[Member]:
        """The members of the space."""
        return await self._read_space(space, directory.members)

    async def post(
        self,
        space: SpaceRef,
        author: EntityRef | Requester,
        text: str,
        *,
        id: MessageId | None = None,
        reply_to: MessageId | None = None,
        urgent: bool = False,
        metadata: Mapping[str, JsonValue] | None = None,
        files: Sequence[Path | FileRef] = (),
    ) -> Posted:
        """Post a message. When this returns, it is in the space and in the inbox of every agent that attends to it.

        An `id` makes it safe to post the same message again; raises `IdempotencyKeyReused` if another message has it.
        Raises `NotAMember` where the author is not in the space. `files` are uploads (`denizen.files.upload`), or paths
        that are uploaded first.

        ```python
        posted = await denizen.spaces.post(kitchen, noor, "@ada is there milk?", urgent=True)
        assert posted.seq == 1
        ```
        """
        by = requester_of(author)
        what = await posting.draft_off_loop(text_of(text, "text"), with_files=bool(files))
        attached = await uploaded(self._runtime, by, files)
        noted = None if metadata is None else mapping_of(metadata, "metadata")
        answered = None if reply_to is None else MessageId(text_of(reply_to, "reply_to"))
        # Chosen before the write: after an unknown outcome the same message is posted again, not a second one.
        chosen = MessageId(new_id() if id is None else text_of(id, "id"))
        self._runtime.remember_cause(chosen)

        async def post() -> Posted:
            return await self._runtime.db.write(
                messaging.post_message,
                by,
                id_of(space),
                what,
                id=chosen,
                reply_to=answered,
                urgent=urgent,
                metadata=noted,
                files=attached,
            )

        try:
            return await post()
        except OutcomeUnknown:
            return await post()

    async def edit_message(self, message: MessageRef, text: str, *, by: EntityRef, ask_again: bool = False) -> Message:
        """Change the text of a message; agents that have read it are told once. For its author, or a manager of the
        space. With `ask_again`, agents that were to answer it are asked to answer it as it is now.
        """
        what = await posting.draft_off_loop(text_of(text, "text"))
        return await self._runtime.db.write(changing.edit_message, id_of(message), id_of(by), what, ask=ask_again)

    async def try_again(self, message: MessageRef, by: EntityRef) -> None:
        """Ask an agent for another answer in place of this one, which stays. The new one's metadata has `again`: the id
        of the earlier one. Raises `InvalidInput` for a message that is not an agent's answer.
        """
        await self._runtime.db.write(asking.ask_for_another, id_of(message), id_of(by))

    async def react(self, message: MessageRef, emoji: str, by: EntityRef, *, remove: bool = False) -> Message:
        """Add a member's reaction to a message, or remove it. An agent reads about it in its next inbox message.

        ```python
        posted = await denizen.spaces.post(kitchen, noor, "Tea is ready.")
        message = await denizen.spaces.react(posted, "👍", by=noor)
        assert message.reactions == {"👍": [noor.id]}
        ```
        """
        act = reactions_and_pins.take_reaction_back if remove else reactions_and_pins.react
        return await self._runtime.db.write(act, id_of(message), id_of(by), text_of(emoji, "emoji"))

    async def pin(self, message: MessageRef, by: EntityRef, *, pinned: bool = True) -> Message:
        """Pin a message for everyone in its space, or unpin it."""
        return await self._runtime.db.write(reactions_and_pins.pin, id_of(message), id_of(by), pinned=pinned)

    async def pins(self, space: SpaceRef, by: EntityRef) -> builtins.list[Message]:
        """The pinned messages of the space, oldest first."""
        return await self._runtime.db.read(reactions_and_pins.pinned_in, id_of(space), id_of(by))

    async def delete_message(self, message: MessageRef, *, by: EntityRef) -> Message:
        """Delete the text of a message and keep its place; agents that have read it are told once."""
        return await self._runtime.db.write(changing.delete_message, id_of(message), id_of(by))

    async def forget_message(
        self,
        message: MessageRef,
        *,
        by: EntityRef | None = None,
        also_replies: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Erase the message from everything that is stored; with `also_replies`, what agents answered it too.

        A dry run changes nothing and returns what would be removed.
        """
        what, who = id_of(message), optional_id_of(by)
        return await forget(self._runtime, dry_run, forgetting.forget_message, what, who, also_replies=also_replies)

    async def messages(self, space: SpaceRef, *, after: int = 0, limit: int = 1_000) -> builtins.list[Message]:
        """The messages of the space after that number, in order."""
        first, most = number_of(after, "after"), number_of(limit, "limit", 1)
        return await self._read_space(space, posting.messages_after, first, limit=most)

    async def transcript(self, space: SpaceRef) -> builtins.list[str]:
        """The conversation, one line a message: `Noor: Hello.`"""
        lines: list[str] = []
        after: int | None = 0
        while after is not None:
            page = await self.messages(space, after=after)
            lines += [f"{message.author_name}: {message.text}" for message in page]
            after = page[-1].seq if page else None
        return lines

    async def search(
        self,
        who: EntityRef,
        words: str,
        *,
        space: SpaceRef | None = None,
        author: EntityRef | None = None,
        before: str | None = None,
        limit: int = 20,
    ) -> SearchResults:
        """The messages in their spaces that have all these words, newest first. `before` continues after a page.

        ```python
        await denizen.spaces.post(kitchen, noor, "Three eggs, please.")
        found = await denizen.spaces.search(noor, "eggs")
        assert [each.text for each in found.messages] == ["Three eggs, please."]
        ```
        """
        wanted = MessageQuery(SearchedWords(text_of(words, "words")), optional_id_of(space), optional_id_of(author))
        place = None if before is None else Cursor.read(text_of(before, "before"))
        return await self._read_entity(who, searching.search, wanted, before=place, limit=number_of(limit, "limit", 1))

    async def mark_read(self, space: SpaceRef, who: EntityRef, seq: int) -> ReadPosition:
        """They have read up to the message of that number, and not what follows it."""
        upto = whole_number_of(seq, "seq")
        return await self._runtime.db.write(reading.mark_read, id_of(space), id_of(who), upto)

    async def statuses(self, space: SpaceRef) -> builtins.list[ShownStatus]:
        """Why people who wait in the space have no answer, for each agent or for the panel. Empty: all is well."""
        return await self._read_space(space, space_statuses.in_space)

    async def stop(
        self, space: SpaceRef, by: EntityRef, agent: AgentRef | Entity | None = None
    ) -> builtins.list[AgentId]:
        """Stop what the agents of the space, or this one, write there. Returns those that were writing.

        What was said so far stays, and says that it was stopped. Work for other spaces goes on.

        ```python
        assert await denizen.spaces.stop(kitchen, by=noor) == []
        ```
        """
        asking = requester_of(by)
        return await self._runtime.db.write(messaging.stop_answer, asking, id_of(space), optional_id_of(agent))

    async def ask_for_answer(self, space: SpaceRef, agent: AgentRef | Entity, by: EntityRef) -> None:
        """Wake an agent that left a message unanswered here, and tell it that this person asks for an answer.

        Raises `InvalidInput` where the agent owes no answer in this space.
        """
        asking = requester_of(by)
        await self._runtime.db.write(messaging.ask_for_answer, asking, id_of(space), id_of(agent))

    async def forget(self, space: SpaceRef, *, by: EntityRef | None = None, dry_run: bool = False) -> Receipt:
        """Erase everything said in the space, its name and its members."""
        return await forget(self._runtime, dry_run, forgetting.forget_space, id_of(space), optional_id_of(by))

    def export(self, space: SpaceRef) -> AsyncGenerator[str]:
        """The lines of a file with the space and everything that was said in it."""
        from denizen.portability import exporting

        return exporting.space_lines(self._runtime.db, id_of(space))
