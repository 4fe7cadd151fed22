"""Model calls outside of rounds: suggesting advisors for a topic, and estimating what a message would cost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pydantic_ai.messages import ModelResponse, ModelResponseStreamEvent

from denizen.clock import Clock
from denizen.cycles.utility_budget import NoRoom, UtilityBudget, pay
from denizen.errors import BudgetSpent, ModelUnreachable
from denizen.ids import SpaceId
from denizen.models.location import patience
from denizen.models.prices import Usage
from denizen.models.thinking import most_output
from denizen.panel import advisors, context, costs, history, panels, suggesting
from denizen.panel.advisors import Advisor
from denizen.panel.asking import AdvisorRequest, PanelDeps, TooLate, ask, in_time, settings_for
from denizen.panel.background import Background, PendingTurn, VoiceBackground, VoiceTurn
from denizen.panel.context import PanelTurn, Persona, PersonMessage, RequestMessage
from denizen.panel.costs import CostEstimate, PanelPayer
from denizen.panel.panels import Panel
from denizen.panel.phases import stage_at
from denizen.panel.rounds import ASSISTANT
from denizen.panel.suggesting import Suggestion
from denizen.spaces.markdown import render
from denizen.storage.database import Tx

SUGGESTING_TOKENS = 6_000


async def suggest(deps: PanelDeps, panel_id: SpaceId, topic: str, count: int) -> list[Suggestion]:
    """Asks a model to suggest advisors for the topic. They are not in the panel until someone adds them."""
    panel, there = await deps.db.read(_panel, panel_id)
    names = [each.name for each in there]
    lines = suggesting.lines(topic, names, count)
    settings = panel.settings
    name, model = await deps.model_for(panel.organization_id, deps.utility_model_of(settings))
    sent = settings_for(model, SUGGESTING_TOKENS, reasoning=False, tool=suggesting.TOOL)
    budget = UtilityBudget(deps.utility_budget_deps, PanelPayer(panel))
    kept = await budget.reserve((name, model), Usage(costs.tokens_of(lines), most_output(sent)))
    if isinstance(kept, NoRoom):
        raise BudgetSpent(kept.text)
    asked = AdvisorRequest(model, lines, sent, suggesting.TOOL, settings.first_byte_seconds, panel_id)
    asking = _Unheard(deps.clock)
    try:
        response = await in_time(deps.clock, patience(model, settings.total_seconds), ask(deps.clock, asked, asking))
    except TooLate as error:
        raise ModelUnreachable("The model took too long to suggest advisors. Try again.") from error
    finally:
        # Also if it failed, or nobody waits for it any more.
        charges = [deps.charge(each, name) for each in asking.responses]
        paying = deps.db.write(pay, budget.payer, charges, kept.reserved)
        await asyncio.shield(asyncio.ensure_future(paying))
    return suggesting.read(response, names, count)


class _Unheard:
    """Asks for an answer that is of use only when it is complete."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.responses: list[ModelResponse] = []

    def hear(self, event: ModelResponseStreamEvent) -> None:
        """Ignores partial answers."""

    def used(self, response: ModelResponse) -> None:
        self.responses.append(response)

    async def pause(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    async def again(self) -> None:
        """Has nothing to undo: no partial answer was shown."""


def _panel(tx: Tx, panel_id: SpaceId) -> tuple[Panel, list[Advisor]]:
    return panels.get(tx, panel_id), advisors.list_of(tx, panel_id)


async def foretell(deps: PanelDeps, panel_id: SpaceId, text: str) -> list[CostEstimate]:
    """Estimates what the message would cost, by advisor."""
    panel, asked = await deps.db.read(_requests, panel_id, text, deps.background)
    told: list[CostEstimate] = []
    for voice, called, wanted, limit, lines in asked:
        name, model = await deps.model_for(panel.organization_id, wanted)
        told.append(costs.foretold(voice, called, lines, limit, model, deps.prices, name))
    return told


def _requests(
    tx: Tx, panel_id: SpaceId, text: str, background: Background | None
) -> tuple[Panel, list[tuple[str, str, str, int, Sequence[RequestMessage]]]]:
    panel = panels.get(tx, panel_id)
    settings, turn = panel.settings, panel.turns + 1
    meant = advisors.addressed(advisors.list_of(tx, panel_id), render(text).mentions)
    present = PanelTurn(PersonMessage("", text, tx.now))
    voices: list[tuple[str, str, int, Persona]] = []
    for each in meant:
        phases = settings.phases if each.settings.phases is None else each.settings.phases
        had = history.turns_had(tx, panel_id, each.id, turn)
        told = _told(tx, panel, text, each.id, each.handle, had, background)
        instructions = stage_at(phases, had + 1).instructions
        system = context.system_prompt(
            each.name, each.description, instructions, memory=told.memory, profile=told.profile
        )
        own = each.settings
        persona = Persona(each.id, system, told.upto)
        voices.append((each.name, own.model or settings.model, own.max_tokens or settings.max_tokens, persona))
    if not voices:
        had = history.turns_had(tx, panel_id, ASSISTANT, turn)
        told = _told(tx, panel, text, ASSISTANT, ASSISTANT, had, background)
        system = context.assistant_prompt(memory=told.memory, profile=told.profile)
        voices = [("Assistant", settings.model, settings.max_tokens, Persona(ASSISTANT, system, told.upto))]
    past = history.past(tx, panel_id, turn, [each[3].voice for each in voices], settings.context_characters)
    built: list[tuple[str, str, str, int, Sequence[RequestMessage]]] = []
    for name, model, limit, persona in voices:
        lines = context.context(
            persona,
            past,
            present,
            characters=settings.context_characters,
            reference_characters=settings.reference_characters,
            show_others=settings.show_others,
        )
        built.append((persona.voice, name, model, limit, lines))
    return panel, built


def _told(
    tx: Tx, panel: Panel, text: str, voice: str, handle: str, had: int, background: Background | None
) -> VoiceBackground:
    """What the advisor would be told, without long-term memories: they are searched for only when a message
    was posted.
    """
    if background is None:
        return VoiceBackground()
    turn = panel.turns + 1
    before = history.last_kept(tx, panel.id, voice, turn)
    return background.tell(tx, VoiceTurn(PendingTurn(panel.id, turn, None, text), voice, handle, had, before), None)
