"""`denizen up` in processes of their own, over one database and one Redis."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests import warm
from tests.servers import free_port

START_SECONDS = 100
GRACE = {"DENIZEN_AGENTS__GRACE_SECONDS": "100"}
"""Whoever is told to stop finishes what is under way, however slow the machine is."""


@dataclass
class Instance:
    """One process. It can be stopped and started again on its port; what it said is kept."""

    home: Path
    environment: Mapping[str, str]
    port: int = field(default_factory=free_port)
    said: list[str] = field(default_factory=list)
    _process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return (self.home / "token").read_text().strip()

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def start(self) -> None:
        """It runs and says so."""
        # Nothing of the machine's own environment but what a shell has: no keys, no settings.
        plain = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        self._process = await asyncio.create_subprocess_exec(
            *(*warm.denizen(), "up"),
            cwd=self.home.parent,
            env={
                **plain,
                "HOME": str(self.home.parent),
                "COLUMNS": "400",
                "DENIZEN_HOME": str(self.home),
                "DENIZEN_PORT": str(self.port),
                **self.environment,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        await self.hear("is up")

    async def hear(self, what: str) -> None:
        """It has said this; what it says before is kept."""
        assert self._process is not None
        assert self._process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            async for line in self._process.stdout:
                self.said.append(line.decode())
                if what in self.said[-1]:
                    return
        raise AssertionError("".join(self.said))

    def tell_to_stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        """Its exit status, once it has one."""
        assert self._process is not None
        rest, _ = await self._process.communicate()
        self.said.append(rest.decode())
        process, self._process = self._process, None
        assert process.returncode is not None
        return process.returncode

    async def get(self, path: str) -> httpx2.Response:
        headers = self.authorization if path.startswith("/api/") else {}
        async with httpx2.AsyncClient(base_url=self.url, timeout=60, headers=headers) as client:
            return await client.get(path)

    async def post(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        async with httpx2.AsyncClient(base_url=self.url, timeout=60, headers=self.authorization) as client:
            return await client.post(path, json=body)

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.communicate()


@asynccontextmanager
async def instance(home: Path, **environment: str) -> AsyncGenerator[Instance]:
    """An instance that is up; on leaving it is gone."""
    made = Instance(home, environment)
    try:
        await made.start()
        yield made
    finally:
        await made.kill()
