"""A mind in memory: the self, the layers and the window of one agent, decoded and in the form of a request.

Only new entries are added to it; no step walks the past. It mirrors the database: if the two may differ, it is
discarded and loaded again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from denizen.consciousness import eras, log, privacy
from denizen.consciousness.lease import Lease
from denizen.consciousness.log import Entry
from denizen.consciousness.privacy import Reader
from denizen.consciousness.settings import WindowSettings
from denizen.consciousness.system_prompt import Era, Identity
from denizen.consciousness.window import Budget, keep, shown
from denizen.ids import AgentId, CycleId
from denizen.models.pictures import pictures_of
from denizen.models.tokens import PER_MESSAGE, estimate
from denizen.storage.database import Tx, select_where
from denizen.storage.schema import minds

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage


class Mind:
    """The self, layers, recent past and open cycle of an agent."""

    def __init__(
        self,
        lease: Lease,
        identity: Identity,
        version: int,
        window: WindowSettings,
        budget: Budget,
        era: Era,
        past: list[Entry],
        first_seq: int = 1,
    ) -> None:
        self.lease = lease
        self.identity = identity
        self.version = version
        self.window = window
        self.budget = budget
        self.era = era
        self.past = past
        """The committed entries in the window, as they are shown."""
        self.present: list[Entry] = []
        """The entries of the open cycle."""
        self.prompt: list[ModelMessage] = []
        """The self, the layers, the past and the present, in the form for the model."""
        self.next_seq = past[-1].seq + 1 if past else first_seq
        self.correction = 1.0
        """The provider's token count divided by our estimate; never taken as less than one."""
        self.window_from: int | None = None
        """The new start of the window, if it has moved since it was last stored."""
        self.unsettled = False
        """Whether something has left the window that the layers do not summarize yet: compaction makes up for it."""
        self.layered = True
        """Whether the layers are shown. They are hidden if they would leave no room for the present."""
        self.views: dict[int, int] = {}
        """Entries that are shown shortened, or hidden, before the era says so; in the same form as there."""
        self.toolless = False
        """Whether the provider has said that the model cannot use tools: then its text is the answer."""
        self.pictured: list[ModelMessage] = []
        """The messages of the prompt that have pictures."""
        self.seen: dict[int, tuple[ModelMessage, ModelMessage]] = {}
        """Those messages with their pictures, by identity, as models get them that see."""
        self.last_cycle_tokens = 0
        """The tokens that the last cycle added."""
        self._layers: tuple[str, ModelMessage] | None = None
        self._past_tokens = sum(entry.tokens for entry in past)
        self._present_tokens = 0
        self._rebuild()

    def _rebuild(self) -> None:
        layers = self.era.layers if self.layered else None
        self.prompt = [
            _self_message(self.era.text),
            *self._with_layers(layers),
            *(entry.message for entry in self.past),
            *(entry.message for entry in self.present),
        ]
        self.pictured = [entry.message for entry in (*self.past, *self.present) if pictures_of(entry.message)]
        self.seen = {id(each): self.seen[id(each)] for each in self.pictured if id(each) in self.seen}
        self.layer_tokens = PER_MESSAGE + estimate(layers) if layers else 0
        self.standing_tokens = PER_MESSAGE + estimate(self.era.text) + self.layer_tokens

    def _with_layers(self, layers: str | None) -> list[ModelMessage]:
        """The message with the layers: the same object as long as the text is the same, so that it is prepared for the
        provider only once.
        """
        if not layers:
            return []
        if self._layers is None or self._layers[0] != layers:
            self._layers = layers, _layers_message(layers)
        return [self._layers[1]]

    @property
    def present_tokens(self) -> int:
        """The tokens that the open cycle has added."""
        return self._present_tokens

    @property
    def tokens(self) -> int:
        """The estimated size of the prompt, without tools."""
        return self.standing_tokens + self._past_tokens + self._present_tokens

    def begin_era(self, era: Era) -> None:
        """Put another self in force."""
        self.era = era
        self._rebuild()

    def settle(self, era: Era, past: Sequence[Entry]) -> None:
        """Take over the result of a compaction: older cycles have left the window, and the layers summarize them."""
        self.past = list(past)
        self._past_tokens = sum(entry.tokens for entry in past)
        self.unsettled, self.layered, self.window_from = False, True, None
        self.views = {}
        self.begin_era(era)

    def add(self, *entries: Entry) -> None:
        """Add entries to the open cycle."""
        for entry in entries:
            self.present.append(entry)
            self.prompt.append(entry.message)
            if pictures_of(entry.message):
                self.pictured.append(entry.message)
            self._present_tokens += entry.tokens
            self.next_seq = entry.seq + 1

    def commit(self) -> None:
        """The open cycle has ended: make it part of the past."""
        self.past.extend(self.present)
        self._past_tokens += self._present_tokens
        self.last_cycle_tokens = self._present_tokens
        self._present_tokens = 0
        self.present.clear()

    def roll_back(self) -> None:
        """Remove the open cycle."""
        if self.present:
            self.next_seq = self.present[0].seq
        del self.prompt[len(self.prompt) - len(self.present) :]
        gone = {id(entry.message) for entry in self.present}
        self.pictured = [each for each in self.pictured if id(each) not in gone]
        self._present_tokens = 0
        self.present.clear()

    def make_room(self, *, target: int, half: int) -> None:
        """Shrink the past in the middle of a cycle to at most `target` tokens, or at most `half`.

        As in a compaction, which summarizes what has left when the cycle has ended. The present stays.
        """
        shortened = {**self.era.shortened, **self.views}
        kept = keep(self.past, shortened, target=target, half=half, recent_cycles=self.window.min_recent_cycles)
        if kept.first > 0:
            staying = self.past[kept.first :] or self.present
            self.window_from = staying[0].seq if staying else self.next_seq
        self.views = {seq: characters for seq, characters in kept.shortened.items() if seq not in self.era.shortened}
        self.past = shown(self.past[kept.first :], kept.shortened)
        self.unsettled = True
        self._past_tokens = sum(entry.tokens for entry in self.past)
        self._rebuild()

    def leave_out_layers(self) -> None:
        """Hide the layers until they have been made again."""
        self.layered, self.unsettled = False, True
        self._rebuild()


def _self_message(text: str) -> ModelMessage:
    """The message that every request of an era begins with."""
    from pydantic_ai.messages import ModelRequest, SystemPromptPart

    return ModelRequest(parts=[SystemPromptPart(text)])


def _layers_message(text: str) -> ModelMessage:
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    return ModelRequest(parts=[UserPromptPart(text)])


_state = select_where(minds, "era, window_from, era_version", "agent_id")


def load(
    tx: Tx,
    lease: Lease,
    identity: Identity,
    version: int,
    window: WindowSettings,
    budget: Budget,
    open_cycle: CycleId | None,
) -> Mind:
    """Load the mind from the database, without the entries of the open cycle."""
    row = tx.one(_state, agent_id=lease.agent_id)
    assert row is not None
    number, first, era_version = row
    era = eras.find(tx, lease.agent_id, number)
    past = [entry for entry in log.entries(tx, lease.agent_id, first) if entry.cycle_id != open_cycle]
    mind = Mind(lease, identity, version, window, budget, era, shown(past, era.shortened), first)
    mind.next_seq = past[-1].seq + 1 if past else first
    # A process that moved the window and died before it updated the layers has left the era without a version.
    mind.unsettled = first > 1 and (era_version == 0 or era.layers is None)
    return mind


def request(tx: Tx, agent_id: AgentId, made_of: Mapping[str, Any], reader: Reader | None = None) -> list[ModelMessage]:
    """Rebuild the exact messages of a request from what is stored with its response, as far as the reader may read
    them; without a reader, all of them."""
    reader = reader or privacy.reader(tx, agent_id, None)
    era = eras.find(tx, agent_id, made_of["era"])
    entries = log.entries(tx, agent_id, made_of["from"], made_of["to"] + 1)
    views = {int(seq): characters for seq, characters in made_of.get("shortened", {}).items()}
    readable = replace(era, text=reader.self_of(era), layers=reader.layers_of(era))
    messages = [_self_message(readable.text)]
    if readable.layers and made_of.get("layers", True):
        messages.append(_layers_message(readable.layers))
    messages += reader.messages(shown(entries, {**era.shortened, **views}))
    if "preview" in made_of:
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        # The preview does not say which space each of its lines comes from.
        preview = privacy.stand_in(1) if reader.closed else made_of["preview"]
        messages.append(ModelRequest(parts=[UserPromptPart(preview)]))
    return messages
