"""Writes an agent of another program as two files that Denizen imports: its space with the person who imports it, with
every message and its date, and the agent, with one cycle for each message and what was answered to it.

So what is imported goes through the same checks as any export, and is recalled, forgotten and exported like a history
that was lived here. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

from pydantic import JsonValue

from denizen.agents.private_spaces import private_space_id
from denizen.clock import Instant, moment
from denizen.consciousness.log import EntryKind
from denizen.consciousness.summary import exchange_summary
from denizen.ids import AgentId, EntityId, SpaceId
from denizen.inbox import sources
from denizen.inbox.events import Event, Lane
from denizen.inbox.format import format_inbox
from denizen.inbox.sources import Source
from denizen.models import codec
from denizen.models.tokens import estimate_message
from denizen.portability.foreign.conversations import ForeignAgent, ForeignConversation, ForeignMessage
from denizen.portability.lines import (
    AgentLine,
    CycleLine,
    CycleSpaceLine,
    EffectLine,
    EndLine,
    EntityLine,
    EntryLine,
    EventLine,
    Header,
    Kind,
    Line,
    MessageLine,
    NoteLine,
    SpaceLine,
    WakingMessage,
    encode,
)
from denizen.spaces.directory import EntityKind
from denizen.spaces.handles import MAX_NAME_CHARS, check_handle, handle_from
from denizen.tools.prebuilt import SEND_MESSAGE

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

_IDS: Final = UUID("4f0f9b0e-6d43-4a8c-9a2b-3c1d7e5f8a60")
TITLE_CHARACTERS: Final = 200
RECENT_CYCLES: Final = 10
"""How many cycles are in the window of the imported agent; the layers summarize those before."""
_NORMAL: Final = 1
"""The lane of an event that is not urgent."""
_LIKE_ANY_OTHER: Final[tuple[Lane, int, bool, int]] = ("normal", 0, True, 0)
"""The lane of an event, its hop, whether it wakes, and its attempts."""


@dataclass(frozen=True, slots=True)
class Importer:
    """The person who imports, as whom the other side of every conversation is known here."""

    id: EntityId
    handle: str
    name: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the person said, and what the agent answered."""

    conversation: ForeignConversation
    begins: bool
    """Whether it is the first of its conversation."""
    heard: tuple[ForeignMessage, ...]
    said: tuple[ForeignMessage, ...]

    @property
    def messages(self) -> tuple[ForeignMessage, ...]:
        return (*self.heard, *self.said)

    @property
    def started_at(self) -> Instant:
        return self.messages[0].at

    @property
    def ended_at(self) -> Instant:
        return self.messages[-1].at


class Translation:
    """The two files. The same export, imported by the same person, has the same ids."""

    def __init__(
        self,
        agent: ForeignAgent,
        person: Importer,
        *,
        handle: str | None = None,
        name: str | None = None,
        trusted: bool = False,
    ) -> None:
        """`trusted`: the person vouches for the text. Otherwise it is text from outside, like that of a guest."""
        self._agent = agent
        self._person = person
        self._outside = 0 if trusted else 1
        self.name = (name or agent.name)[:MAX_NAME_CHARS]
        self.handle = check_handle(handle) if handle else handle_from(self.name)
        self.agent_id = AgentId(self._id(f"{person.id} {agent.digest} {self.handle}"))
        self.space_id: SpaceId = private_space_id(person.id, self.agent_id)
        self._space_name = f"{person.name} and {self.name}"[:MAX_NAME_CHARS]
        self._exchanges = exchanges(agent.conversations)

    def space_file(self) -> Iterator[str]:
        """The lines of the space."""
        return _file("space", self._space_lines())

    def agent_file(self) -> Iterator[str]:
        """The lines of the agent."""
        return _file("agent", self._agent_lines())

    def _id(self, name: str) -> str:
        return str(uuid5(_IDS, name))

    def _message_id(self, exchange: Exchange, message: ForeignMessage) -> str:
        return self._id(json.dumps([self.agent_id, exchange.conversation.id, message.id, message.who]))

    # The space

    def _space_lines(self) -> Iterator[Line]:
        total = sum(len(each.messages) for each in self._exchanges)
        yield SpaceLine(id=self.space_id, kind="conversation", name=self._space_name, private=1, messages=total)
        person = self._person
        yield _member(person.id, "human", person.handle, person.name, total)
        yield _member(self.agent_id, "agent", self.handle, self.name, 0)
        seq = 0
        for exchange in self._exchanges:
            origin: dict[str, JsonValue] = {
                "from": self._agent.source,
                "conversation": exchange.conversation.title[:TITLE_CHARACTERS],
            }
            for each in exchange.messages:
                seq += 1
                yield MessageLine(
                    id=self._message_id(exchange, each),
                    seq=seq,
                    author_id=self._person.id if each.who == "person" else self.agent_id,
                    text=each.text,
                    plain=None,
                    mentions=(),
                    reply_to=None,
                    metadata={"imported": origin},
                    hop=0 if each.who == "person" else 1,
                    edited_at=None,
                    deleted_at=None,
                    outside=self._outside,
                    created_at=each.at,
                )

    # The agent

    def _agent_lines(self) -> Iterator[Line]:
        firsts = _firsts(self._exchanges)
        lived = list(zip(count(1), firsts, self._exchanges, strict=False))
        last = max((each.ended_at for each in self._exchanges), default=Instant(0))
        yield AgentLine(
            id=self.agent_id,
            handle=self.handle,
            name=self.name,
            definition={"instructions": self._agent.instructions} if self._agent.instructions else {},
            cycles=len(lived),
            last_cycle_at=last,
            window_from=firsts[-RECENT_CYCLES] if len(firsts) > RECENT_CYCLES else 1,
            era=0,
            outside=self._outside,
        )
        for key, text in self._agent.notes:
            yield NoteLine(key=key, text=text, outside=self._outside, created_at=last, updated_at=last)
        for number, first, exchange in lived:
            yield self._cycle(number, first, exchange)
        for number, _, _ in lived:
            yield CycleSpaceLine(cycle=number, space_id=self.space_id, private=1)
        for number, first, exchange in lived:
            yield from self._entries(number, first, exchange)
        for number, _, exchange in lived:
            yield from self._effects(number, exchange)
            yield from self._events(number, exchange)

    def _cycle(self, number: int, first: int, exchange: Exchange) -> CycleLine:
        heard = [(self._person.name, each.text) for each in exchange.heard]
        return CycleLine(
            number=number,
            outcome="acted",
            first_seq=first,
            started_at=exchange.started_at,
            ended_at=exchange.ended_at,
            steps=1,
            active_space_id=self.space_id,
            stop_reason=None,
            summary=exchange_summary(heard, [each.text for each in exchange.said]),
            told=None,
            outside_from=first if self._outside else None,
            input_tokens=0,
            output_tokens=0,
            cost_micros=0,
        )

    def _entries(self, number: int, first: int, exchange: Exchange) -> Iterator[EntryLine]:
        # What the model was asked there is not known: the parts of its request are not named.
        made_of: dict[str, JsonValue] = {
            "era": 0,
            "from": first,
            "tools": "",
            "settings": {},
            "model": self._agent.source,
        }
        source = Source("service", self._agent.source)
        for seq, (kind, message) in enumerate(self._log(number, exchange), start=first):
            yield EntryLine(
                seq=seq,
                cycle=number,
                kind=kind,
                message=codec.dump(message),
                tokens=estimate_message(message),
                request=json.dumps(made_of) if kind == "response" else None,
                outside=sources.dump([source]) if self._outside else None,
                created_at=exchange.started_at if kind == "inbox" else exchange.ended_at,
            )

    def _log(self, number: int, exchange: Exchange) -> Iterator[tuple[EntryKind, ModelMessage]]:
        """What the agent read, said and was told, as it would be if it had lived here."""
        from pydantic_ai.messages import (
            ModelRequest,
            ModelResponse,
            TextPart,
            ToolCallPart,
            ToolReturnPart,
            UserPromptPart,
        )

        now = moment(exchange.ended_at)
        inbox = format_inbox(list(self._inbox(number, exchange)), now=exchange.started_at)
        yield "inbox", ModelRequest(parts=[UserPromptPart(inbox, timestamp=moment(exchange.started_at))])
        if not exchange.said:
            parts = [TextPart(f"(No answer is in what was imported from {self._agent.source}.)")]
            yield "response", ModelResponse(parts=parts, model_name=self._agent.source, timestamp=now)
            return
        calls = [
            ToolCallPart(SEND_MESSAGE, {"text": each.text}, tool_call_id=f"imported_{at}")
            for at, each in enumerate(exchange.said)
        ]
        yield "response", ModelResponse(parts=calls, model_name=self._agent.source, timestamp=now)
        results = [
            ToolReturnPart(SEND_MESSAGE, self._sent(exchange, each), f"imported_{at}", timestamp=now)
            for at, each in enumerate(exchange.said)
        ]
        yield "results", ModelRequest(parts=results)

    def _sent(self, exchange: Exchange, message: ForeignMessage) -> str:
        return json.dumps({"success": True, "messageId": self._message_id(exchange, message)}, separators=(",", ":"))

    def _inbox(self, number: int, exchange: Exchange) -> Iterator[Event]:
        if exchange.begins:
            yield Event(
                number,
                self._opening_id(exchange),
                "service_trigger",
                *_LIKE_ANY_OTHER,
                created_at=exchange.started_at,
                text=_opening(exchange),
                payload={"service": self._agent.source},
            )
        for each in exchange.heard:
            yield Event(
                number,
                self._message_id(exchange, each),
                "space_message",
                *_LIKE_ANY_OTHER,
                created_at=each.at,
                text=each.text,
                space_id=self.space_id,
                space_name=self._space_name,
                sender_id=self._person.id,
                sender_name=self._person.name,
                sender_handle=self._person.handle,
                sender_kind="human",
            )

    def _opening_id(self, exchange: Exchange) -> str:
        return self._id(json.dumps([self.agent_id, exchange.conversation.id]))

    def _effects(self, number: int, exchange: Exchange) -> Iterator[EffectLine]:
        for at, each in enumerate(exchange.said):
            yield EffectLine(
                cycle=number,
                step=0,
                position=at,
                tool=SEND_MESSAGE,
                state="done",
                changes=1,
                result=self._sent(exchange, each),
                created_at=each.at,
            )

    def _events(self, number: int, exchange: Exchange) -> Iterator[EventLine]:
        """What woke the cycle. The title of a conversation is an event of the program, so that it can be recalled."""
        for event in self._inbox(number, exchange):
            said = None
            if event.type == "space_message":
                said = WakingMessage(
                    id=event.id,
                    space=self._space_name,
                    sender_id=self._person.id,
                    sender=self._person.name,
                    sender_kind="human",
                    text=event.text,
                )
            yield EventLine(
                cycle=number,
                id=event.id,
                type=event.type,
                lane=_NORMAL,
                wakes=1,
                hop=0,
                attempts=0,
                space_id=self.space_id,
                said=said,
                payload=None if said else {**event.payload, "text": event.text},
                created_at=event.created_at,
            )


def _member(id: str, kind: EntityKind, handle: str, name: str, read_seq: int) -> EntityLine:
    return EntityLine(id=id, kind=kind, handle=handle, name=name, role="member", attention="all", read_seq=read_seq)


def exchanges(conversations: Iterable[ForeignConversation]) -> list[Exchange]:
    """Each message of the person, or several in a row, with what the agent answered to it; in the order of time."""
    found = [each for conversation in conversations for each in _of_conversation(conversation)]
    return sorted(found, key=lambda each: each.started_at)


def _of_conversation(conversation: ForeignConversation) -> Iterator[Exchange]:
    heard: list[ForeignMessage] = []
    said: list[ForeignMessage] = []
    begins = True
    for message in conversation.messages:
        if message.who == "person" and said:
            yield Exchange(conversation, begins, tuple(heard), tuple(said))
            heard, said, begins = [], [], False
        (heard if message.who == "person" else said).append(message)
    if heard or said:
        yield Exchange(conversation, begins, tuple(heard), tuple(said))


def _opening(exchange: Exchange) -> str:
    return f"The conversation “{exchange.conversation.title[:TITLE_CHARACTERS]}” begins."


def _firsts(given: Sequence[Exchange]) -> list[int]:
    """The numbers of the first log entry of each cycle: it has an inbox, a response and, if something was said, its
    results.
    """
    return list(accumulate((3 if each.said else 2 for each in given[:-1]), initial=1)) if given else []


def _file(kind: Kind, lines: Iterable[Line]) -> Iterator[str]:
    yield encode(Header(kind=kind))
    written = 1
    for line in lines:
        yield encode(line)
        written += 1
    yield encode(EndLine(lines=written + 1))
