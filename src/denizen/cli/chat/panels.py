"""The answers of a panel's advisors, as messages in a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

from denizen.cli.chat.once import OnceResult
from denizen.cli.panel.columns import Columns
from denizen.cli.panel.following import follow, panel_events
from denizen.client import Author, Client, Message, Space, SpaceStatus
from denizen.errors import ServerUnreachable
from denizen.ids import new_id
from denizen.shapes.panels import ReplyOut, RoundOut


class Answers:
    """The answers that were shown already: the stream and the rounds mention the same ones."""

    def __init__(self) -> None:
        self._shown: set[tuple[str, str, str, int]] = set()

    async def read(self, client: Client, panel_id: str) -> list[Message]:
        """Returns the complete answers of the last turns that were not shown yet."""
        return list(self.new((await client.rounds(panel_id)).rounds))

    def new(self, rounds: Iterable[RoundOut]) -> Iterator[Message]:
        """Yields the complete answers in these rounds that were not shown yet."""
        for each in rounds:
            for reply in (*each.advisor_responses.values(), *([each.synthesis] if each.synthesis else ())):
                key = each.id, reply.advisor, reply.part, reply.epoch
                if reply.state == "done" and key not in self._shown and (text := _text(reply)):
                    self._shown.add(key)
                    yield _message(each, reply, text)


async def ask_panel_once(
    client: Client, space: Space, text: str, *, seconds: float, on_reply: Callable[[Message], None]
) -> OnceResult:
    """Asks the panel, and passes on each complete answer, until the turn is over or the time is up."""
    panel, answers, replies = await client.panel(space.id), Answers(), list[Message]()
    async with panel_events(client, panel.id) as events:
        said = await client.post(panel.id, text, key=new_id())
        begun = [each for each in (await client.rounds(panel.id)).rounds if each.message_id == said.id]
        columns = Columns(panel, begun[0].turn if begun else 0)

        def show() -> None:
            for answer in answers.new(columns.in_order):
                replies.append(answer)
                on_reply(answer)

        try:
            async with asyncio.timeout(seconds):
                for each in begun:
                    await follow(client, events, columns, show, each)
        except TimeoutError:
            pass
    voices = [each.reply for each in columns.voices.values()]
    unfinished = [each.name for each in voices if not each.completed]
    statuses = [] if unfinished else await _statuses(client, said)
    errors = [] if statuses else [_error(each) for each in voices if each.state == "failed"]
    return OnceResult(said, tuple(replies), tuple(unfinished), (), tuple(statuses), tuple(errors))


async def _statuses(client: Client, said: Message) -> list[SpaceStatus]:
    """Returns why nobody in the panel has answered this message."""
    try:
        spaces = await client.spaces()
    except ServerUnreachable:
        return []
    return [each for space in spaces for each in space.statuses if each.message_id == said.id]


def _error(reply: ReplyOut) -> str:
    return f"{reply.name} could not answer: {reply.error.message if reply.error else 'no reason is known.'}"


def _text(reply: ReplyOut) -> str:
    if reply.part == "vote" and reply.result is not None:
        return f"{reply.result.get('position')}: {reply.result.get('reason') or ''}".removesuffix(": ")
    return reply.content


def _message(round_: RoundOut, reply: ReplyOut, text: str) -> Message:
    return Message(
        id=f"{round_.id}/{reply.advisor}/{reply.part}",
        space_id=round_.panel,
        seq=0,
        author=Author(id=reply.advisor, kind="advisor", name=reply.name),
        text=text,
        plain=text,
        mentions=[],
        reply_to=None,
        metadata={},
        created_at=round_.completed_at or round_.created_at,
        edited_at=None,
        deleted_at=None,
    )
