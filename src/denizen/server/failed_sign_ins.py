"""Failed sign-ins in the audit log: enough to see an attack, and not a row for each attempt of a flood.

From each address the first, the tenth, the hundredth … failure of an hour makes an entry; all addresses together make
`ENTRIES_PER_HOUR` at most. In memory, and so for each process by itself.
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

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

HOUR: Final = 3_600 * SECOND
ENTRIES_PER_HOUR: Final = 100
ADDRESSES: Final = 20_000
"""How many addresses are counted at once."""


class FailedSignIns:
    """Counts failed sign-ins of this hour by address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hour = 0
        self._attempts: Counter[str] = Counter()
        self._entries = 0

    def count(self, address: str) -> int | None:
        """One more has failed from there: how many that are in this hour, if this makes an entry."""
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
    """The failure is in the audit log, if it makes an entry. Never fails: the caller is refused in any case."""
    attempts = failed.count(address)
    if attempts is None:
        return
    try:
        await runtime.db.write(_record, address, attempts, secret)
    except StorageError as error:
        log.warning("failed sign-in was not audited", error=str(error))


def _record(tx: Tx, address: str, attempts: int, secret: str) -> None:
    """In the log of the one whose token this was; of the first organization where it is nobody's."""
    token = tokens.find_any(tx, secret)
    owner = None if token is None else directory.get_entity(tx, token.entity_id)
    home = directory.first_organization(tx) if owner is None else owner.organization_id
    if home is None:
        return
    whose = {} if token is None else {"token": token.id, "kind": token.kind}
    subject = None if owner is None else owner.id
    audit.record(tx, home, OPERATOR, "failed_sign_in", subject, address=address, attempts_this_hour=attempts, **whose)
