"""The calls of a space that a reader was sent, and their order among messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from denizen.ids import CallId
from denizen.spaces.posting import Message
from denizen.tools.calls import Call, State


class ToldCalls:
    """The calls of one space that one reader was sent, so that each state of a call is sent once."""

    def __init__(self) -> None:
        self._states: dict[CallId, State] = {}

    @property
    def told(self) -> object:
        """The calls that the reader has, with their states. Equal for readers that have the same."""
        return dict(self._states)

    @property
    def waiting(self) -> list[CallId]:
        """The calls that the reader has as waiting."""
        return [id for id, state in self._states.items() if state == "waiting"]

    def new(self, found: Iterable[Call]) -> list[Call]:
        """Returns the calls that the reader has not, or has in another state, and notes them as sent."""
        new = [each for each in found if self._states.get(each.id) != each.state]
        self._states.update((each.id, each.state) for each in new)
        return new

    def message_told(self) -> None:
        """Drops the calls that were settled before a message that the reader has."""
        if self._states:
            self._states = dict.fromkeys(self.waiting, "waiting")


def in_order(messages: Sequence[Message], found: Sequence[Call]) -> Sequence[Message | Call]:
    """Puts each call after the message that it follows."""
    if not found:
        return messages
    both: list[Message | Call] = [*messages, *found]
    return sorted(both, key=lambda each: each.seq if isinstance(each, Message) else each.after_seq)


def split_at(found: Sequence[Call], seq: int) -> tuple[list[Call], list[Call]]:
    """Splits the calls into those before this message and the others."""
    return [each for each in found if each.after_seq < seq], [each for each in found if each.after_seq >= seq]
