"""Sends notifications to the push services of browsers, in the background: nobody waits for it.

What is to be sent is a row until it was sent, so that a restart loses nothing, and is worded when it is sent, so that
no copy of a text stays behind. Push services are reached only at public addresses.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import httpx2
import structlog

from denizen.access.vault import Vault
from denizen.clock import Clock
from denizen.errors import AddressRefused, SecretKeyMissing, SecretUnreadable, StorageError
from denizen.notifications import news, subscriptions
from denizen.notifications.encryption import BrowserKeys, ServerKey, encrypt
from denizen.notifications.news import FRESH_SECONDS, LONGEST_PAUSE_SECONDS, DueNotification
from denizen.storage.database import Database
from denizen.telemetry.logs import get_logger
from denizen.tools.outbound import Outbound

log: structlog.typing.FilteringBoundLogger = get_logger(__name__)

LOOK_SECONDS: Final = 5.0
"""How often to look for what other processes have stored, and for what is to be tried again."""
PAUSE_SECONDS: Final = 0.2
"""The least time between two looks, however much is said."""
SEND_SECONDS: Final = 15.0
AT_ONCE: Final = 20
TRIES: Final = 8
FIRST_PAUSE_SECONDS: Final = 30
"""The pause after a first failure; doubled each time, up to `LONGEST_PAUSE_SECONDS`."""
_DIGITS: Final = 9
_CONTACT: Final = "mailto:push@example.com"


@dataclass(frozen=True, slots=True)
class Sent:
    """The push service has accepted it."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The browser has ended its subscription."""


@dataclass(frozen=True, slots=True)
class Later:
    """The push service is busy or out of reach."""

    seconds: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The push service will never accept it."""


Outcome: TypeAlias = Sent | Gone | Later | Refused


def outcome(status: int | None, retry_after: str | None, tries: int) -> Outcome:
    """What an answer of a push service means; a `status` of None: there was none."""
    if status is not None and 200 <= status < 300:
        return Sent()
    if status in (404, 410):
        return Gone()
    if status is not None and status != 429 and status < 500:
        return Refused()
    if tries >= TRIES:
        return Refused()
    asked = _seconds(retry_after)
    return Later(min(max(asked, FIRST_PAUSE_SECONDS * 2 ** (tries - 1)), LONGEST_PAUSE_SECONDS))


def _seconds(retry_after: str | None) -> int:
    """The seconds in the header `Retry-After`, as far as they matter."""
    if retry_after is None or not retry_after.isdecimal():
        return 0
    # A push service can be anyone's, and Python does not read numbers of thousands of digits.
    return int(retry_after) if len(retry_after) <= _DIGITS else LONGEST_PAUSE_SECONDS


class Pusher:
    """Sends what people are to be notified of, inside `running`."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        vault: Vault,
        outbound: Outbound,
        *,
        public_url: str = "",
        allow_private: tuple[str, ...] = (),
    ) -> None:
        self._db = db
        self._clock = clock
        self._vault = vault
        self._outbound = outbound
        # Push services write to this address if there is a problem.
        self._contact = public_url if public_url.startswith("https://") else _CONTACT
        self._allow_private = allow_private
        self._key: ServerKey | None = None
        self._hinted = asyncio.Event()

    def hint(self) -> None:
        """Something was said or asked."""
        self._hinted.set()

    async def key(self) -> ServerKey:
        """The server's key for push services. Raises `SecretKeyMissing` or `SecretUnreadable`."""
        if self._key is None:
            self._key = await subscriptions.server_key(self._db, self._vault)
        return self._key

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While entered, sends what there is. The server's key is made at the first start."""
        try:
            await self.key()
        except (SecretKeyMissing, SecretUnreadable) as error:
            log.warning("web push is off: the key of the server cannot be kept or read", error=str(error))
            yield
            return
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._keep_sending(), name="web push")
            try:
                yield
            finally:
                task.cancel()

    async def _keep_sending(self) -> None:
        while True:
            self._hinted.clear()
            try:
                await self.send_all()
            except* StorageError as errors:
                log.warning("notifications could not be read or stored", error=str(errors.exceptions[0]))
            except* Exception:  # The loop's boundary: the server must not end for it.
                log.exception("notifications interrupted by a defect")
            await self._clock.sleep(PAUSE_SECONDS)
            await self._clock.wait(self._hinted, LOOK_SECONDS)

    async def send_all(self) -> None:
        """Decides what people are to be notified of, and sends what is due."""
        if await self._db.read(subscriptions.has_ended):
            await self._db.write(subscriptions.drop_ended)
        if await self._db.read(news.has_news):
            await self._db.write(news.collect)
        while await self._db.read(news.has_due):
            claimed = await self._db.write(news.claim, AT_ONCE)
            async with asyncio.TaskGroup() as tasks:
                for each in claimed:
                    tasks.create_task(self._send(each), name="web push to one browser")

    async def _send(self, what: DueNotification) -> None:
        try:
            became = await self._post(what)
        except Exception:  # One browser must end neither the server nor the notifications of others.
            log.exception("notification not sent, by a defect", subscription=what.subscription_id)
            became = Later(LONGEST_PAUSE_SECONDS) if what.tries < TRIES else Refused()
        match became:
            case Sent():
                await self._db.write(news.finish, what)
            case Refused():
                await self._db.write(news.finish, what)
            case Gone():
                await self._db.write(subscriptions.drop, what.subscription_id)
            case Later(seconds):
                await self._db.write(news.postpone, what, seconds)

    async def _post(self, what: DueNotification) -> Outcome:
        key = await self.key()
        headers = {
            "Authorization": key.authorization(what.endpoint, self._contact, self._clock.now()),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(FRESH_SECONDS),
            "Urgency": "high" if what.kind == "call" else "normal",
        }
        body = encrypt(what.news.to_json(), BrowserKeys.read(what.p256dh, what.auth))
        status, retry_after = None, None
        # The address holds a secret of the browser: only the host may be logged.
        host = urlsplit(what.endpoint).hostname
        try:
            async with asyncio.timeout(SEND_SECONDS):
                client = self._outbound.client(self._allow_private)
                # Its body is not read: it may be of any size.
                async with client.stream("POST", what.endpoint, content=body, headers=headers) as answer:
                    status, retry_after = answer.status_code, answer.headers.get("retry-after")
        except AddressRefused:
            log.warning("push service has a private address", host=host)
            return Gone()
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            log.info("push service out of reach", host=host, error=type(error).__name__)
        found = outcome(status, retry_after, what.tries)
        if isinstance(found, Refused):
            log.warning("push service refused a notification", host=host, status=status, tries=what.tries)
        return found
