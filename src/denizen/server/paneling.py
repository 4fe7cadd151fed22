"""A panel for clients of OpenAI's API: everyone's answer, under their names, as one text that only grows."""

from __future__ import annotations

from typing import Final
from uuid import UUID, uuid5

from denizen.bus.port import Gap
from denizen.bus.streams import PanelDelta, space_topic
from denizen.clock import SECOND, Clock
from denizen.cycles.ledger import Charge
from denizen.errors import NotFound
from denizen.ids import MessageId
from denizen.panel import panels
from denizen.panel.panels import Panel
from denizen.panel.rounds import ASSISTANT, Reply, Round
from denizen.panel.transcript import said
from denizen.server.answering import Pass
from denizen.server.auth import Caller
from denizen.server.context import Context
from denizen.server.sse import Ear, hearing
from denizen.spaces.handles import handle_from
from denizen.storage.database import Tx, storable

MODEL: Final = "panel:"
"""What the name of a panel as a model begins with."""
_KEYS: Final = UUID("1d9b7c52-8a3e-4f64-b0f1-6a2d9e5c7b13")
MOST_FRAMES: Final = 100_000


def named(tx: Tx, model: str, caller: Caller) -> Panel:
    """The panel that a model's name means: `panel:` and its id, or its name as a handle."""
    wanted = storable(model.removeprefix(MODEL))
    mine = panels.panels_of(tx, caller.entity.id)
    found = [each for each in mine if each.id == wanted] or [
        each for each in mine if handle_from(each.name) == wanted.lower()
    ]
    if len(found) != 1:
        raise NotFound("model", model)
    return found[0]


def shown(panel: Panel) -> str:
    """How the panel is called as a model."""
    return f"{MODEL}{panel.id}"


async def ask(context: Context, caller: Caller, panel: Panel, text: str, key: str | None) -> Round:
    """The message stands in the panel, and everyone has it to answer."""
    id = None if key is None else MessageId(str(uuid5(_KEYS, f"{caller.entity.id} {panel.id} {key}")))
    return await context.runtime.ask_panel(panel, caller.entity.id, text, id=id)


async def answer(context: Context, asked: Round, pass_on: Pass) -> Round:
    """Each answer is passed on when it is there, under its name; an empty text says that all is well.

    Gives the round when it is complete, when the time is over, or when the server ends.
    """
    clock, limits = context.runtime.clock, context.limits
    until = clock.now() + int(limits.completion_seconds * SECOND)
    told: set[str] = set()
    async with hearing(context.runtime.bus, MOST_FRAMES, {space_topic(asked.panel_id)}) as ear:
        while True:
            now = await context.runtime.round(asked)
            for each in now.spoken:
                if each.is_over and each.voice not in told:
                    told.add(each.voice)
                    await pass_on(block(each))
            seconds = min((until - clock.now()) / SECOND, limits.heartbeat_seconds)
            if now.all_completed or seconds <= 0 or ear.over or context.ending.is_set():
                return now
            if not await _something(clock, ear, seconds):
                await pass_on("")


async def _something(clock: Clock, ear: Ear, seconds: float) -> bool:
    """Whether something but more text has happened before the time is over."""
    while await clock.wait(ear.arrived, seconds):
        item = ear.take()
        if item is not None and (isinstance(item, Gap) or not isinstance(item[1], PanelDelta)):
            return True
        if ear.over:
            return True
    return False


def block(reply: Reply) -> str:
    """One answer under its name; the plain assistant has none."""
    return said(reply) if reply.voice == ASSISTANT else f"## {reply.name}\n\n{said(reply)}"


def spent(now: Round) -> Charge:
    """What the round has used."""
    return Charge(
        None,
        sum(each.input_tokens for each in now.replies),
        sum(each.output_tokens for each in now.replies),
        cost_micros=sum(each.cost_micros or 0 for each in now.replies),
    )
