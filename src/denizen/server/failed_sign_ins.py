"""Failed sign-ins in the audit log: enough to see an attack, without a row for each attempt of a flood.

For each address, the first, tenth, hundredth … failure of an hour is recorded; all addresses together make at most
`ENTRIES_PER_HOUR` entries. Counted in memory, by each process separately.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import structlog

from denizen.access import audit, tokens
from denizen.access.audit import OPERATOR
from denizen.app import Runtime
from denizen.clock import SECOND, Clock
from denizen.errors import StorageError
from denizen.spaces import directory
from denizen.storage.database import Tx
from denizen.telemetry.logs import get_logger

log: structlog.typing.FilteringBoundLogger = get_logger(__name__)

HOUR: Final = 3_600 * SECOND
ENTRIES_PER_HOUR: Final = 100
ADDRESSES: Final = 20_000
"""How many addresses are counted at once."""


class FailedSignIns:
    """Counts the failed sign-ins of this hour by address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hour = 0
        self._attempts: Counter[str] = Counter()
        self._entries = 0

    def count(self, address: str) -> int | None:
        """Counts a failure; returns the number of failures in this hour if this one is to be recorded."""
        hour = self._clock.now() // HOUR
        if hour != self._hour:
            self._hour, self._attempts, self._entries = hour, Counter(), 0
        if address not in self._attempts and len(self._attempts) >= ADDRESSES:
            return None
        self._attempts[address] += 1
        attempts = self._attempts[address]
        if not _is_power_of_ten(attempts) or self._entries >= ENTRIES_PER_HOUR:
            return None
        self._entries += 1
        return attempts


def _is_power_of_ten(number: int) -> bool:
    return str(number).strip("0") == "1"


async def note(runtime: Runtime, failed: FailedSignIns, address: str, secret: str) -> None:
    """Records the failure in the audit log, if it is due. Never raises: the caller is refused in any case."""
    attempts = failed.count(address)
    if attempts is None:
        return
    try:
        await runtime.db.write(_record, address, attempts, secret)
    except StorageError as error:
        log.warning("failed sign-in was not audited", error=str(error))


def _record(tx: Tx, address: str, attempts: int, secret: str) -> None:
    """Records it in the audit log of the token's owner; of the first organization if the token is unknown."""
    token = tokens.find_any(tx, secret)
    owner = None if token is None else directory.get_entity(tx, token.entity_id)
    home = directory.first_organization(tx) if owner is None else owner.organization_id
    if home is None:
        return
    whose = {} if token is None else {"token": token.id, "kind": token.kind}
    subject = None if owner is None else owner.id
    audit.record(tx, home, OPERATOR, "failed_sign_in", subject, address=address, attempts_this_hour=attempts, **whose)
