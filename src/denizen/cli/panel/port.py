"""What the commands need of panels. A `Client` is one way to them, the database of this machine the other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any, Final, Protocol

from pydantic import JsonValue

from denizen.client.shapes.panels import Advisor, Panel, PanelCost, Round, Rounds, Suggestion
from denizen.client.shapes.stances import Signals, StatesOfMind, TriedMetaprompt, VoiceStance
from denizen.client.streaming import LifeEvent
from denizen.errors import InvalidInput, NotFound

ASSISTANT: Final = "assistant"
"""Who answers in a panel without advisors."""


class Panels(Protocol):
    """One person's way to the panels that they are in. Everything is named by its id."""

    async def panels(self) -> list[Panel]: ...

    async def create_panel(
        self,
        name: str,
        advisors: Iterable[Mapping[str, JsonValue]] = (),
        *,
        members: Iterable[str] = (),
        private: bool = False,
        settings: Mapping[str, JsonValue] | None = None,
    ) -> Panel: ...

    async def change_panel(self, panel_id: str, *, name: str | None = None, **settings: JsonValue) -> Panel: ...

    async def add_advisor(self, panel_id: str, fields: Mapping[str, JsonValue]) -> Advisor: ...

    async def change_advisor(self, panel_id: str, advisor_id: str, **changes: JsonValue) -> Advisor: ...

    async def remove_advisor(self, panel_id: str, advisor_id: str) -> None: ...

    async def order_advisors(self, panel_id: str, advisor_ids: Iterable[str]) -> list[Advisor]: ...

    async def export_advisors(self, panel_id: str) -> dict[str, Any]: ...

    async def import_advisors(
        self, panel_id: str, document: Mapping[str, Any], *, replace: bool = False
    ) -> list[Advisor]: ...

    async def suggest_advisors(self, panel_id: str, topic: str, *, count: int = 8) -> list[Suggestion]: ...

    async def ask_panel(self, panel_id: str, text: str) -> Round: ...

    async def rounds(self, panel_id: str, *, before: int | None = None, limit: int = 20) -> Rounds: ...

    async def synthesize(self, panel_id: str, round_id: str) -> Round: ...

    async def crosstalk(self, panel_id: str, round_id: str, *, rounds: int = 1) -> Round: ...

    async def vote(self, panel_id: str, round_id: str, question: str = "") -> Round: ...

    async def panel_cost(self, panel_id: str, text: str) -> PanelCost: ...

    async def panel_transcript(self, panel_id: str) -> str: ...

    async def advisor_stances(self, panel_id: str) -> list[VoiceStance]: ...

    async def advisor_stance(self, panel_id: str, voice: str) -> VoiceStance: ...

    async def set_advisor_state_of_mind(self, panel_id: str, voice: str, **state: str) -> VoiceStance: ...

    async def reset_advisor_state_of_mind(self, panel_id: str, voice: str) -> None: ...

    async def advisor_states_of_mind(self, panel_id: str, voice: str, *, limit: int = 50) -> StatesOfMind: ...

    async def advisor_signals(self, panel_id: str, voice: str, *, limit: int = 50) -> Signals: ...

    async def try_advisor_metaprompt(
        self, panel_id: str, voice: str, metaprompt: str, *, apply: bool = False
    ) -> TriedMetaprompt: ...

    def stream_panel(self, panel_id: str) -> AsyncGenerator[LifeEvent]: ...


async def find(desk: Panels, wanted: str) -> Panel:
    """The panel of this id, name or beginning of a name."""
    mine = await desk.panels()
    asked = wanted.strip().casefold()
    for found in (
        [each for each in mine if each.id == asked or each.name.casefold() == asked],
        [each for each in mine if each.name.casefold().startswith(asked)],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            raise InvalidInput(f"Several panels are called that: {', '.join(each.id for each in found)}. Give an id.")
    names = ", ".join(each.name for each in mine) or "none yet: `denizen panel create NAME` opens one"
    raise InvalidInput(f"You are in no panel {wanted!r}. There are: {names}.")


def advisor_in(panel: Panel, named: str) -> Advisor:
    """The advisor of this id, handle or name."""
    asked = named.strip().removeprefix("@").casefold()
    for each in panel.advisors:
        if asked in (each.id, each.handle, each.name.casefold()):
            return each
    raise NotFound("advisor", named)


def voice_in(panel: Panel, named: str) -> str:
    """The id of the advisor that is called so; or the plain assistant."""
    try:
        return advisor_in(panel, named).id
    except NotFound:
        if named.strip().casefold() == ASSISTANT:
            return ASSISTANT
        raise
