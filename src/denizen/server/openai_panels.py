"""Panels as models of OpenAI's API: the answers of all advisors, under their names, as one growing text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from denizen.bus.port import Gap
from denizen.bus.streams import WANTED, PanelDelta, ReplyChanged, RoundChanged, StreamFrame, space_topic, wanted_payload
from denizen.clock import SECOND
from denizen.cycles.ledger import Charge
from denizen.errors import NotFound
from denizen.ids import MessageId, new_id
from denizen.panel import panels, unanswered
from denizen.panel.panels import Panel
from denizen.panel.rounds import SPOKEN, Round
from denizen.server.answering import Pass, follow, listening
from denizen.server.auth import Caller
from denizen.server.context import Context
from denizen.server.idempotency import id_for
from denizen.server.inline_files import GivenFile, store_all
from denizen.server.round_text import RoundText
from denizen.server.sse import Ear
from denizen.server.streams.panel import PanelLive
from denizen.spaces.handles import handle_from
from denizen.storage.database import Tx, storable

MODEL: Final = "panel:"
"""The prefix of a panel's name as a model."""
STOPPING: Final = "This server is stopping. What you wrote is kept, and will be answered in the panel."


def named(tx: Tx, model: str, caller: Caller) -> Panel:
    """Finds the panel that a model's name means: `panel:` and its id, or its name as a handle."""
    wanted = storable(model.removeprefix(MODEL))
    mine = panels.panels_of(tx, caller.entity.id)
    found = [each for each in mine if each.id == wanted] or [
        each for each in mine if handle_from(each.name) == wanted.lower()
    ]
    if len(found) != 1:
        raise NotFound("model", model)
    return found[0]


def shown(panel: Panel) -> str:
    """The name of the panel as a model."""
    return f"{MODEL}{panel.id}"


async def ask(
    context: Context,
    caller: Caller,
    panel: Panel,
    text: str,
    key: str | None,
    metadata: Mapping[str, JsonValue] | None = None,
    given: Sequence[GivenFile] = (),
) -> Round:
    """Posts the message with its files in the panel, which starts a round; with the same key, only once."""
    chosen = id_for(caller, f"round {panel.id}", key)
    id = MessageId(chosen or new_id())
    files = await store_all(context.runtime, caller.entity.id, given, id)
    return await context.runtime.panels.ask(panel, caller.requester, text, id=id, metadata=metadata, files=files)


async def answer(context: Context, asked: Round, pass_on: Pass | None = None) -> Round:
    """Waits until the round is complete, the time is over, or the server stops.

    Passes on what the advisors write, in the order of the panel; an empty text means that the connection is alive.
    """
    until = context.runtime.clock.now() + int(context.limits.completion_seconds * SECOND)
    async with listening(context, {space_topic(asked.panel_id)}) as ear:
        return await _Following(context, asked, pass_on).until(ear, until)


async def why_unanswered(context: Context, now: Round) -> str:
    """Returns who could not answer in this round, why, and what to do; empty if all have answered or still may."""
    if not now.all_completed:
        return ""
    if any(each.state == "done" for each in now.spoken):
        failed = [each for each in now.spoken if each.state == "failed"]
        return await context.runtime.db.read(unanswered.why_some_failed, now.panel_id, failed)
    shown = await context.runtime.db.read(unanswered.in_space, now.panel_id)
    return next((each.text for each in shown if each.round_id == now.id), "")


class _Following:
    """Follows one round."""

    def __init__(self, context: Context, asked: Round, pass_on: Pass | None) -> None:
        self._context = context
        self._asked = asked
        self._pass_on = pass_on
        self._live = PanelLive()
        self._text = RoundText()

    async def until(self, ear: Ear, deadline: int) -> Round:
        now = await self.look()
        if any(each.state == "running" for each in now.spoken):
            # It is being answered already: the text is requested from its beginning.
            self._want_again()
        now = await follow(self._context, ear, deadline, self, now)
        stopped = not now.all_completed and (ear.over or self._context.ending.is_set())
        await self._pass(self._text.end(STOPPING if stopped else await why_unanswered(self._context, now)))
        return now

    def is_over(self, now: Round) -> bool:
        return now.all_completed

    async def tell_alive(self) -> None:
        if self._pass_on is not None:
            await self._pass_on("")

    async def hear(self, item: StreamFrame | Gap, now: Round) -> Round:
        match item:
            case Gap():
                return await self.look()
            case RoundChanged() | ReplyChanged() if item.round == self._asked.id:
                return await self.look()
            case PanelDelta() if item.round == self._asked.id and item.part in SPOKEN:
                piece = self._live.hear(item)
                if piece is not None and not item.thinking:
                    await self._pass(self._text.hear(item.voice, item.epoch, str(piece["text"])))
                if self._live.wanted():
                    self._want_again()
            case _:
                pass
        return now

    async def look(self) -> Round:
        now = await self._context.runtime.rounds.get(self._asked)
        self._live.seen(now.spoken)
        await self._pass(self._text.see(now.spoken))
        return now

    def _want_again(self) -> None:
        self._context.runtime.bus.publish(WANTED, wanted_payload([self._asked.panel_id]))

    async def _pass(self, text: str) -> None:
        if self._pass_on is not None and text:
            await self._pass_on(text)


def spent(now: Round) -> Charge:
    """The usage of the round."""
    return Charge(
        None,
        sum(each.input_tokens for each in now.replies),
        sum(each.output_tokens for each in now.replies),
        cost_micros=sum(each.cost_micros or 0 for each in now.replies),
    )
