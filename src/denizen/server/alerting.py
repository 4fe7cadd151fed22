"""Alerts owners of trouble with an agent or a panel: in their event streams, and by a webhook if one is set.

Nothing waits for the alerts to be delivered.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Final

import httpx2
import structlog

from denizen.access.signatures import GENERIC_HEADER, generic_signature
from denizen.agents import owner_alerts
from denizen.agents.owner_alerts import Alert, PanelAlert
from denizen.app import Runtime
from denizen.clock import SECOND, moment
from denizen.errors import AddressRefused, StorageError
from denizen.telemetry.logs import get_logger
from denizen.tools.outbound import Outbound

log: structlog.typing.FilteringBoundLogger = get_logger(__name__)

LOOK_SECONDS: Final = 10.0
"""How often to check whether trouble has begun or ended."""
SEND_SECONDS: Final = 15.0


@dataclass(frozen=True)
class Receiver:
    """The webhook that alerts are sent to."""

    url: str
    secret: str | None = None
    allow_private: tuple[str, ...] = ()
    outbound: Outbound = field(default_factory=Outbound)


async def keep_telling(runtime: Runtime, receiver: Receiver | None, stop: asyncio.Event) -> None:
    """Sends alerts as trouble begins, until `stop` is set."""
    while not stop.is_set():
        try:
            await tell(runtime, receiver)
        except StorageError as error:
            log.warning("owners could not be told of trouble", error=str(error))
        await runtime.clock.wait(stop, LOOK_SECONDS)


async def tell(runtime: Runtime, receiver: Receiver | None) -> None:
    """Sends new alerts to the owners' streams, and to the receiver those it has not received yet."""
    if await runtime.db.read(owner_alerts.changes):
        await runtime.db.write(owner_alerts.record)
    if receiver is None or not await runtime.db.read(owner_alerts.has_due):
        return
    for alert in await runtime.db.write(owner_alerts.claim):
        if await _send(receiver, alert, runtime.public_url, runtime.clock.now()):
            await runtime.db.write(owner_alerts.mark_sent, alert)


async def _send(receiver: Receiver, alert: Alert, server: str, now: int) -> bool:
    """Returns whether the receiver has accepted the alert."""
    body = json.dumps(payload(alert, server), ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json"}
    if receiver.secret is not None:
        headers[GENERIC_HEADER] = generic_signature(receiver.secret, now // SECOND, body)
    try:
        async with asyncio.timeout(SEND_SECONDS):
            client = receiver.outbound.client(receiver.allow_private)
            answer = await client.post(receiver.url, content=body, headers=headers)
    except (httpx2.HTTPError, AddressRefused, TimeoutError) as error:
        log.warning("webhook for alerts failed", cause=alert.cause, error=type(error).__name__, **_subject(alert))
        return False
    if not answer.is_success:
        log.warning("webhook for alerts failed", cause=alert.cause, status=answer.status_code, **_subject(alert))
    return answer.is_success


def _subject(alert: Alert) -> dict[str, str]:
    return {"panel": alert.space_id} if isinstance(alert, PanelAlert) else {"agent": alert.agent_id}


def payload(alert: Alert, server: str) -> dict[str, object]:
    """The JSON that the receiver gets."""
    if isinstance(alert, PanelAlert):
        of_whom = {"type": "panel.trouble", "panel": {"id": alert.space_id, "name": alert.name}}
    else:
        agent = {"id": alert.agent_id, "handle": alert.handle, "name": alert.name}
        of_whom = {"type": "agent.trouble", "agent": agent}
    return {
        **of_whom,
        "cause": alert.cause,
        "text": alert.text,
        "since": moment(alert.created_at).isoformat(),
        "server": server,
    }
