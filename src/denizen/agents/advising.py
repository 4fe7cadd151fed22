"""Context for the advisors of panels: the profile of the turn, their state of mind, and memories.

A profile is chosen as for an agent, and the choice is stored with the reply: a turn without a reply chose nothing.
Memories are looked up once for all advisors of a panel, by the cadence of profiles, and included in each turn, because
each request is built anew; each time, it is checked whether everyone who can read the panel may know them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from denizen.ids import SpaceId
from denizen.memory import items, panel_summaries, reminding, rolling
from denizen.memory.items import MemoryItem
from denizen.memory.policy import Scope
from denizen.memory.settings import Configuration
from denizen.memory.sinks import MemoryQuery, Retriever, retrieved
from denizen.panel.background import PendingTurn, VoiceBackground, VoiceTurn
from denizen.profiles.presets import Presets
from denizen.profiles.router import CachedChoice, PresetChoice, panel_text
from denizen.reflection.stance_store import VOICES
from denizen.storage.database import Database, Tx

_PANELS_KNOWN: Final = 20_000
"""For how many panels the last lookup is kept."""


@dataclass(frozen=True, slots=True)
class _FoundMemories:
    turn: int
    memories: tuple[MemoryItem, ...]


@dataclass(frozen=True, slots=True)
class MemoryLookups:
    """The dependencies of memory lookups."""

    retriever: Retriever
    configuration: Configuration


class Advising:
    """Adds context to the requests of advisors; a `Background` of panels."""

    def __init__(
        self, db: Database, presets: Callable[[Tx, SpaceId], Presets | None], remembering: MemoryLookups | None
    ) -> None:
        self._db = db
        self._presets = presets
        self._remembering = remembering
        self._last: OrderedDict[SpaceId, _FoundMemories] = OrderedDict()

    def compacted(self, space_id: SpaceId) -> None:
        """A panel was compacted: with its next turn, memories are looked up anew."""
        if self._remembering is not None and self._remembering.configuration.now().routing.on_compaction:
            self._last.pop(space_id, None)

    async def bring(self, turns: Sequence[PendingTurn]) -> Mapping[str, tuple[MemoryItem, ...]]:
        """Look up long-term memory for each of these panels."""
        found = await asyncio.gather(*(self._found(each) for each in turns))
        return {each.panel_id: memories for each, memories in zip(turns, found, strict=True)}

    async def _found(self, said: PendingTurn) -> tuple[MemoryItem, ...]:
        if self._remembering is None or not (now := self._remembering.configuration.now()).long_term.enabled:
            return ()
        last = self._last.get(said.panel_id)
        every = now.routing.every_turns
        if last is not None and last.turn <= said.turn and (not every or said.turn - last.turn < every):
            return last.memories
        found = reminding.fitting(await self._retrieve(said, now.long_term.top_k), now.long_term.max_characters)
        await self._db.write(items.used, [each.number for each in found if each.number > 0])
        self._last[said.panel_id] = _FoundMemories(said.turn, tuple(found))
        if len(self._last) > _PANELS_KNOWN:
            self._last.popitem(last=False)
        return tuple(found)

    async def _retrieve(self, said: PendingTurn, top_k: Mapping[Scope, int]) -> list[MemoryItem]:
        assert self._remembering is not None
        allowed = (await self._db.read(panel_summaries.owners, said.panel_id, said.message_id)).owners
        if not allowed:
            return []
        wanted = MemoryQuery(said.text[: reminding.QUERY_CHARACTERS], allowed, top_k)
        return await retrieved(self._remembering.retriever, wanted, panel=said.panel_id)

    def tell(self, tx: Tx, ask: VoiceTurn, brought: Any) -> VoiceBackground:
        """The profile of the turn, the advisor's state of mind, and its memories."""
        memory, upto, remembered, outside = self._memory(tx, ask, brought or ())
        profile, chosen = self._profile(tx, ask, upto)
        mind = VOICES.stance(tx, ask.voice, ask.said.panel_id).state
        told = [profile, "" if mind.line() is None else f"In this conversation {mind.line()}. This sets the tone only."]
        felt = {} if mind.line() is None else {"mind": mind.as_dict()}
        return VoiceBackground(memory, upto, "\n\n".join(filter(None, told)), {**remembered, **chosen, **felt}, outside)

    def _memory(self, tx: Tx, ask: VoiceTurn, found: Sequence[MemoryItem]) -> tuple[str, int, dict[str, Any], bool]:
        """The advisor's memories, up to which message, what is stored of them, and whether they hold outside text."""
        if self._remembering is None:
            return "", 0, {}, False
        panel_id = ask.said.panel_id
        state = rolling.find(tx, panel_id, ask.voice)
        there = (
            panel_summaries.still_there(tx, found, panel_summaries.owners(tx, panel_id, ask.said.message_id).owners)
            if found
            else []
        )
        now = panel_summaries.unsaid(there, state)
        text = "\n\n".join(each for each in (panel_summaries.summed_up(state), panel_summaries.reminded(now)) if each)
        counts = {scope: sum(each.scope == scope for each in now) for scope in dict.fromkeys(e.scope for e in now)}
        kept = {"memory": {"upto": state.upto, "memories": counts}} if text else {}
        return text, state.upto, kept, bool(text) and (state.outside or any(each.source is not None for each in now))

    def _profile(self, tx: Tx, ask: VoiceTurn, upto: int) -> tuple[str, dict[str, Any]]:
        presets = self._presets(tx, ask.said.panel_id)
        if presets is None:
            return "", {}
        chosen, text = panel_text(presets, f"panel:{ask.handle}", ask.said.text, _cached(ask, upto))
        kept = {
            "preset": chosen.choice.preset,
            "reason": chosen.choice.reason,
            "turn": chosen.turn,
            "reviewed": chosen.reviewed,
        }
        return text, {"profile": kept}


def _cached(ask: VoiceTurn, upto: int) -> CachedChoice | None:
    """The cached choice of the last turn that the advisor answered."""
    kept = ask.before.get("profile")
    if kept is None:
        return None
    summed = ask.before.get("memory", {}).get("upto", 0)
    return CachedChoice(PresetChoice(kept["preset"], kept["reason"]), kept["turn"], kept["reviewed"], upto != summed)
