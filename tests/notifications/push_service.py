"""A push service that stands in for those of browsers' makers, and a browser that can read what it is sent."""

from __future__ import annotations

import base64
import json
import os
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import http_ece
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from denizen import Runtime
from denizen.access import tokens
from denizen.access.vault import Vault, keys_in_memory
from denizen.clock import SECOND, Instant
from denizen.notifications import subscriptions
from denizen.notifications.pushing import Pusher
from denizen.spaces.directory import Entity
from denizen.tools.addresses import Address
from denizen.tools.outbound import Outbound
from tests.tools.test_http_tools import self_signed

HOST = "push.example"
VAULT = Vault(keys_in_memory())


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Browser:
    """The keys of one subscription, and what it can read with them."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._auth = os.urandom(16)
        point = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self.keys = {"p256dh": base64url(point), "auth": base64url(self._auth)}

    def read(self, body: bytes) -> Any:
        """What a push message says, as another implementation decrypts it."""
        return json.loads(http_ece.decrypt(body, private_key=self._key, auth_secret=self._auth, version="aes128gcm"))


@dataclass
class PushService:
    """Answers each message with the next of `answers`, then with 201."""

    port: int = 0
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list[tuple[int, dict[str, str]]])
    received: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list[tuple[str, dict[str, str], bytes]])
    browsers: dict[str, Browser] = field(default_factory=dict[str, Browser])

    def endpoint(self, name: str) -> str:
        return f"https://{HOST}:{self.port}/send/{name}"

    async def accept(self, asked: web.Request) -> web.Response:
        self.received.append((asked.path, dict(asked.headers), await asked.read()))
        status, headers = self.answers.pop(0) if self.answers else (201, {})
        return web.Response(status=status, headers=headers)

    def told(self) -> list[dict[str, Any]]:
        """What the browsers can read of everything that arrived."""
        return [self.browsers[path.rpartition("/")[2]].read(body) for path, _, body in self.received]

    async def subscribe(self, denizen: Runtime, who: Entity, name: str = "one") -> str:
        """The person is notified in a browser of this name, in a session of its own."""
        end = Instant(denizen.clock.now() + tokens.SESSION_SECONDS * SECOND)
        token, _ = await denizen.db.write(tokens.create, who.id, "browser", kind="session", expires_at=end)
        browser = self.browsers.setdefault(name, Browser())
        new = subscriptions.checked(self.endpoint(name), browser.keys["p256dh"], browser.keys["auth"])
        await denizen.db.write(subscriptions.subscribe, who.id, token.id, new)
        return token.id


async def _here(_host: str, _port: int) -> Sequence[Address]:
    return [IPv4Address("127.0.0.1")]


@asynccontextmanager
async def push_service(folder: Path) -> AsyncGenerator[tuple[PushService, Outbound]]:
    """The service, and connections with which it can be reached: by name, with a certificate that is believed."""
    certificate = self_signed(HOST, folder)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate)
    service = PushService()
    app = web.Application()
    app.router.add_post("/send/{name}", service.accept)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=serving).start()
    service.port = runner.addresses[0][1]
    try:
        trusted = ssl.create_default_context(cafile=str(certificate))
        async with Outbound(resolve=_here, tls=trusted) as outbound:
            yield service, outbound
    finally:
        await runner.cleanup()


def pusher(denizen: Runtime, outbound: Outbound, *, allow_private: tuple[str, ...] = (HOST,)) -> Pusher:
    """Sends what people are to be notified of, also where the runtime has no key of its own to seal with."""
    return Pusher(denizen.db, denizen.clock, VAULT, outbound, allow_private=allow_private)
