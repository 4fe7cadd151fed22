"""The minds of agents that were released a moment ago, decoded: an agent that wakes again at once is not read anew.

Only the holder of the lease writes what a mind holds, and others that change it (forgetting, another instance) take
the lease or counts its epoch up. So a mind is as it was if the next epoch is the one right after its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from denizen.clock import SECOND, Instant
from denizen.consciousness.lease import Lease
from denizen.consciousness.mind import Mind
from denizen.consciousness.system_prompt import Identity
from denizen.consciousness.window import Budget
from denizen.ids import AgentId

MOST: Final = 32
KEPT_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class RecentMinds:
    """A few minds, each for a short while."""

    _minds: dict[AgentId, tuple[Instant, Mind]] = field(default_factory=dict[AgentId, tuple[Instant, Mind]])
    """The one that was kept longest ago comes first."""

    def keep(self, mind: Mind, now: Instant) -> None:
        """Keep the mind of an agent that has no open cycle and is about to be released."""
        self._minds.pop(mind.lease.agent_id, None)
        self._minds[mind.lease.agent_id] = now, mind
        self.drop_old(now)

    def take(self, lease: Lease, identity: Identity, version: int, budget: Budget, now: Instant) -> Mind | None:
        """The agent's mind under its new lease, if it is still as it was; nobody else gets it."""
        self.drop_old(now)
        _, mind = self._minds.pop(lease.agent_id, (now, None))
        if mind is None or mind.lease.epoch + 1 != lease.epoch:
            return None
        if (mind.identity, mind.version, mind.budget) != (identity, version, budget):
            return None
        mind.lease = lease
        return mind

    def drop_old(self, now: Instant) -> None:
        """Let go of those that were kept long enough, and of the oldest if there are too many."""
        for agent_id, (kept_at, _) in list(self._minds.items()):
            # The clock may have been set back.
            if abs(now - kept_at) <= KEPT_SECONDS * SECOND and len(self._minds) <= MOST:
                return
            del self._minds[agent_id]
