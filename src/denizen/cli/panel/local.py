"""Panels by way of the database of this machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any, cast

from pydantic import JsonValue

from denizen.app import Runtime
from denizen.bus.port import Gap
from denizen.bus.streams import PanelDelta, ReplyChanged, RoundChanged, from_payload, space_topic
from denizen.cli.desk.telling import told
from denizen.client import Connected, Happened
from denizen.client.shapes.panels import Advisor, Panel, PanelCost, Round, Rounds, Suggestion
from denizen.client.shapes.stances import Reflection, Signal, Signals, StatesOfMind, TriedMetaprompt, VoiceStance
from denizen.client.streaming import LifeEvent
from denizen.ids import SpaceId
from denizen.panel import advisors, panels, rounds, standing
from denizen.panel.standing import Standing
from denizen.server.shapes.panels import AdvisorOut, CostOut, PanelOut, ReplyOut, RoundOut
from denizen.server.shapes.stances import RunOut, SignalOut, TriedOut, VoiceStanceOut
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx


class LocalPanels:
    """The panels of the house's owner."""

    def __init__(self, runtime: Runtime, owner: Entity) -> None:
        self._runtime = runtime
        self._owner = owner

    async def panels(self) -> list[Panel]:
        return [await self._told(each.id) for each in await self._runtime.panels(self._owner)]

    async def create_panel(
        self,
        name: str,
        advisors: Iterable[Mapping[str, JsonValue]] = (),
        *,
        members: Iterable[str] = (),
        private: bool = False,
        settings: Mapping[str, JsonValue] | None = None,
    ) -> Panel:
        there = [await self._runtime.find(each, organization=self._owner.organization_id) for each in members]
        made = await self._runtime.create_panel(
            name,
            [self._owner, *there],
            advisors=list(advisors),
            private=private,
            organization=self._owner.organization_id,
            **dict(settings or {}),
        )
        return await self._told(made.id)

    async def change_panel(self, panel_id: str, *, name: str | None = None, **settings: JsonValue) -> Panel:
        self._runtime.check_reflection(settings.get("reflection"))
        await self._runtime.db.write(_change, SpaceId(panel_id), name, settings)
        return await self._told(SpaceId(panel_id))

    async def add_advisor(self, panel_id: str, fields: Mapping[str, JsonValue]) -> Advisor:
        [made] = await self._runtime.add_advisors(SpaceId(panel_id), fields)
        return _advisor(made)

    async def change_advisor(self, panel_id: str, advisor_id: str, **changes: JsonValue) -> Advisor:
        return _advisor(await self._runtime.edit_advisor(SpaceId(panel_id), advisor_id, **changes))

    async def remove_advisor(self, panel_id: str, advisor_id: str) -> None:
        await self._runtime.remove_advisor(SpaceId(panel_id), advisor_id)

    async def order_advisors(self, panel_id: str, advisor_ids: Iterable[str]) -> list[Advisor]:
        return [_advisor(each) for each in await self._runtime.reorder_advisors(SpaceId(panel_id), advisor_ids)]

    async def export_advisors(self, panel_id: str) -> dict[str, Any]:
        return await self._runtime.export_advisors(SpaceId(panel_id))

    async def import_advisors(
        self, panel_id: str, document: Mapping[str, Any], *, replace: bool = False
    ) -> list[Advisor]:
        made = await self._runtime.import_advisors(SpaceId(panel_id), document, replace=replace)
        return [_advisor(each) for each in made]

    async def suggest_advisors(self, panel_id: str, topic: str, *, count: int = 8) -> list[Suggestion]:
        found = await self._runtime.suggest_advisors(SpaceId(panel_id), topic, count=count)
        return [Suggestion(name=e.name, kind=e.kind, description=e.description, reason=e.reason) for e in found]

    async def ask_panel(self, panel_id: str, text: str) -> Round:
        return _round(await self._runtime.ask_panel(SpaceId(panel_id), self._owner, text))

    async def rounds(self, panel_id: str, *, before: int | None = None, limit: int = 20) -> Rounds:
        found = await self._runtime.db.read(_of_turns, SpaceId(panel_id), before, limit)
        return Rounds(rounds=tuple(map(_round, found)), next=None)

    async def synthesize(self, panel_id: str, round_id: str) -> Round:
        return _round(await self._runtime.synthesize(await self._get(panel_id, round_id)))

    async def crosstalk(self, panel_id: str, round_id: str, *, rounds: int = 1) -> Round:
        asked = await self._get(panel_id, round_id)
        return _round(await self._runtime.crosstalk(asked, by=self._owner, times=rounds))

    async def vote(self, panel_id: str, round_id: str, question: str = "") -> Round:
        return _round(await self._runtime.vote(await self._get(panel_id, round_id), question, by=self._owner))

    async def panel_cost(self, panel_id: str, text: str) -> PanelCost:
        out = CostOut.of(await self._runtime.foretell(SpaceId(panel_id), text))
        return PanelCost.model_validate(out.model_dump(mode="json"))

    async def panel_transcript(self, panel_id: str) -> str:
        return await self._runtime.panel_transcript(SpaceId(panel_id))

    # States of mind

    async def advisor_stances(self, panel_id: str) -> list[VoiceStance]:
        found = await self._runtime.advisor_standings(SpaceId(panel_id))
        return [told(VoiceStance, VoiceStanceOut.of(each)) for each in found]

    async def advisor_stance(self, panel_id: str, voice: str) -> VoiceStance:
        found = await self._runtime.db.read(_standing, SpaceId(panel_id), voice)
        return told(VoiceStance, VoiceStanceOut.of(found))

    async def set_advisor_state_of_mind(self, panel_id: str, voice: str, **state: str) -> VoiceStance:
        wanted = cast("dict[str, Any]", state)
        await self._runtime.set_advisor_state_of_mind(SpaceId(panel_id), voice, **wanted, by=self._owner)
        return await self.advisor_stance(panel_id, voice)

    async def reset_advisor_state_of_mind(self, panel_id: str, voice: str) -> None:
        await self._runtime.reset_advisor_state_of_mind(SpaceId(panel_id), voice, by=self._owner)

    async def advisor_states_of_mind(self, panel_id: str, voice: str, *, limit: int = 50) -> StatesOfMind:
        found = await self._runtime.advisor_states_of_mind(SpaceId(panel_id), voice, limit=limit)
        return StatesOfMind(runs=tuple(told(Reflection, RunOut.of(each)) for each in found))

    async def advisor_signals(self, panel_id: str, voice: str, *, limit: int = 50) -> Signals:
        found = await self._runtime.advisor_signals(SpaceId(panel_id), voice, limit=limit)
        return Signals(signals=tuple(told(Signal, SignalOut.of(each)) for each in found))

    async def try_advisor_metaprompt(
        self, panel_id: str, voice: str, metaprompt: str, *, apply: bool = False
    ) -> TriedMetaprompt:
        tried = await self._runtime.try_advisor_metaprompt(
            SpaceId(panel_id), voice, metaprompt, apply=apply, by=self._owner
        )
        return told(TriedMetaprompt, TriedOut.of(tried))

    async def stream_panel(self, panel_id: str) -> AsyncGenerator[LifeEvent]:
        async with self._runtime.bus.subscribe(space_topic(SpaceId(panel_id)), limit=100_000) as frames:
            yield Connected()
            async for item in frames:
                frame = None if isinstance(item, Gap) else from_payload(item.payload)
                match frame:
                    case PanelDelta():
                        yield Happened("panel.delta", {**frame.to_payload(), "advisor": frame.voice})
                    case RoundChanged():
                        now = RoundOut.of(await self._get(panel_id, frame.round))
                        yield Happened("panel.round", now.model_dump(mode="json"))
                    case ReplyChanged():
                        reply = await self._runtime.db.read(rounds.reply, frame.round, frame.voice, frame.part)
                        yield Happened(
                            "panel.reply", {"round": frame.round, "reply": ReplyOut.of(reply).model_dump(mode="json")}
                        )
                    case _:
                        pass

    async def _told(self, panel_id: SpaceId) -> Panel:
        panel = await self._runtime.get_panel(panel_id)
        out = PanelOut.of(panel, await self._runtime.advisors(panel_id))
        return Panel.model_validate(out.model_dump(mode="json"))

    async def _get(self, panel_id: str, round_id: str) -> rounds.Round:
        return await self._runtime.db.read(rounds.get, SpaceId(panel_id), round_id)


def _change(tx: Tx, panel_id: SpaceId, name: str | None, settings: Mapping[str, JsonValue]) -> None:
    if name is not None:
        directory.rename_space(tx, panel_id, name)
    if settings:
        panels.edit(tx, panel_id, settings)


def _standing(tx: Tx, panel_id: SpaceId, voice: str) -> Standing:
    return standing.standing(tx, panels.get(tx, panel_id), voice)


def _of_turns(tx: Tx, panel_id: SpaceId, before: int | None, limit: int) -> list[rounds.Round]:
    last = panels.get(tx, panel_id).turns if before is None else before - 1
    return [each for turn in range(max(last - limit + 1, 1), last + 1) for each in rounds.of_turn(tx, panel_id, turn)]


def _advisor(made: advisors.Advisor) -> Advisor:
    return Advisor.model_validate(AdvisorOut.of(made).model_dump(mode="json"))


def _round(now: rounds.Round) -> Round:
    return Round.model_validate(RoundOut.of(now).model_dump(mode="json"))
