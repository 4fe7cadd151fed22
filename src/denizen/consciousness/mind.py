"""A warm mind: the self and the window of one agent, decoded and in the form that a request takes.

Only what is new is added to it; nothing walks the past at each step. It holds what the database holds: whoever finds
the two may differ throws it away and loads another.
"""

from __future__ import annotations

from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart
from sqlalchemy import bindparam, select

from denizen.consciousness import log
from denizen.consciousness.lease import Lease
from denizen.consciousness.log import Entry
from denizen.consciousness.selfhood import Era, Identity
from denizen.consciousness.settings import WindowSettings
from denizen.consciousness.window import Budget, first_that_fits
from denizen.ids import CycleId
from denizen.models.tokens import PER_MESSAGE, estimate
from denizen.storage.database import Tx, statement
from denizen.storage.schema import minds, selves


class Mind:
    """What an agent has in mind: its self, its recent past, and the cycle it is in."""

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
        """The committed entries that the window shows."""
        self.present: list[Entry] = []
        """The entries of the open cycle."""
        self.prompt: list[ModelMessage] = []
        """The self, the past and the present, as they go to the model."""
        self.next_seq = past[-1].seq + 1 if past else first_seq
        self.correction = 1.0
        """How many tokens the provider counts for each that we estimate; never taken as less than one."""
        self.window_from: int | None = None
        """Where the window begins, if that has moved since it was last stored."""
        self._past_tokens = sum(entry.tokens for entry in past)
        self._present_tokens = 0
        self._rebuild()

    def _rebuild(self) -> None:
        self.prompt = [
            ModelRequest(parts=[SystemPromptPart(self.era.text)]),
            *(entry.message for entry in self.past),
            *(entry.message for entry in self.present),
        ]
        self.self_tokens = PER_MESSAGE + estimate(self.era.text)

    @property
    def present_tokens(self) -> int:
        """What the open cycle has added."""
        return self._present_tokens

    @property
    def tokens(self) -> int:
        """The estimated size of the prompt, tools apart."""
        return self.self_tokens + self._past_tokens + self._present_tokens

    def begin_era(self, era: Era) -> None:
        """Another self is in force."""
        self.era = era
        self._rebuild()

    def add(self, *entries: Entry) -> None:
        """The open cycle has gone on."""
        for entry in entries:
            self.present.append(entry)
            self.prompt.append(entry.message)
            self._present_tokens += entry.tokens
            self.next_seq = entry.seq + 1

    def commit(self) -> None:
        """The open cycle has ended: it is past now."""
        self.past.extend(self.present)
        self._past_tokens += self._present_tokens
        self._present_tokens = 0
        self.present.clear()

    def roll_back(self) -> None:
        """The open cycle never was."""
        if self.present:
            self.next_seq = self.present[0].seq
        del self.prompt[len(self.prompt) - len(self.present) :]
        self._present_tokens = 0
        self.present.clear()

    def start_within(self, tokens: int) -> int:
        """Where the window must begin so that past and present have at most `tokens`; the present always stays."""
        kept = first_that_fits(self.past, tokens - self._present_tokens)
        return self.past[kept].seq if kept < len(self.past) else self.present[0].seq

    def begin_at(self, seq: int) -> None:
        """The window begins at this entry, the first of its cycle; what is older has left it."""
        kept = next((index for index, entry in enumerate(self.past) if entry.seq >= seq), len(self.past))
        if kept == 0:
            return
        del self.past[:kept]
        self.window_from = seq
        self._past_tokens = sum(entry.tokens for entry in self.past)
        self._rebuild()


_state = statement(select(minds.c.era, minds.c.window_from).where(minds.c.agent_id == bindparam("agent_id")))
_self = statement(
    select(selves.c.text).where(selves.c.agent_id == bindparam("agent_id"), selves.c.era == bindparam("era"))
)


def load(
    tx: Tx,
    lease: Lease,
    identity: Identity,
    version: int,
    window: WindowSettings,
    budget: Budget,
    open_cycle: CycleId | None,
) -> Mind:
    """The mind as the database has it, without the entries of the open cycle."""
    row = tx.one(_state, agent_id=lease.agent_id)
    assert row is not None
    era, first = row
    text = tx.one(_self, agent_id=lease.agent_id, era=era)
    past = [entry for entry in log.entries(tx, lease.agent_id, first) if entry.cycle_id != open_cycle]
    return Mind(lease, identity, version, window, budget, Era(era, text[0] if text else ""), past, first)
