"""What a conversation needs of the other side: `denizen.client.Client` has it, and `Local` in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from pydantic import JsonValue

from denizen.client import Agent, Call, Me, Message, Space, StreamEvent


class Connection(Protocol):
    """One person's way to the spaces that person is in.

    Where the other side cannot be reached, it raises `ServerUnreachable` or a `StorageError`: trying again may help.
    """

    async def me(self) -> Me: ...

    async def spaces(self) -> list[Space]:
        """The spaces this person is in, in the order in which they were made."""
        ...

    async def agents(self) -> list[Agent]:
        """The agents of this person's organization that are not dead, and how each is."""
        ...

    async def messages(
        self, space_id: str, *, after: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[Message]:
        """Messages after a number, or the last ones before one, or the newest; the oldest of them first."""
        ...

    async def post(self, space_id: str, text: str, *, key: str) -> Message:
        """The message stands in the space. Posting again with the same key is posting once."""
        ...

    async def mark_read(self, space_id: str, seq: int) -> object:
        """This person has read up to that number there."""
        ...

    async def calls(self) -> list[Call]:
        """What agents ask and this person may answer, the oldest first."""
        ...

    async def call(self, call_id: str) -> Call:
        """A call as it stands."""
        ...

    async def answer(self, call_id: str, result: JsonValue) -> Call:
        """The call has this result, and its agent goes on with it. One that has an answer is refused another."""
        ...

    async def try_again(self, agent: str, *, space: str | None = None) -> object:
        """The agent tries again now what it could not do in that space."""
        ...

    async def ask_for_answer(self, space_id: str, agent: str) -> None:
        """The agent left a message unanswered there: it is woken and asked for an answer."""
        ...

    def stream(self, space_id: str, *, after: int) -> AsyncGenerator[StreamEvent]:
        """What is said after that number, each message once and in order, and live what is being written, and the
        calls that people see, for ever.

        Each stretch begins with `Connected`; where it breaks off, `Lost` is said, and it is tried again.
        """
        ...
