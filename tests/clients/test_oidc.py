"""Signing in with a browser at a second identity provider, made with Django OAuth Toolkit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urljoin

import httpx2

from denizen.settings.shape import OidcSettings
from tests.clients.conftest import HERE, environment
from tests.server.conftest import served
from tests.server.test_provider_sign_in import Browser
from tests.servers import free_port
from tests.world import open_world


@asynccontextmanager
async def provider(python: Path, port: int, house: str) -> AsyncGenerator[str]:
    program = await asyncio.create_subprocess_exec(
        str(python),
        *("-W", "ignore", str(HERE / "programs" / "oidc_provider.py"), str(port)),
        *(f"{house}/login/oidc/callback", f"{house}/login"),
        env=environment(),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert program.stderr is not None
    try:
        said = b""
        while b"ready" not in said:
            line = await program.stderr.readline()
            assert line, said.decode()
            said += line
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(program.stderr.read())
            address = f"http://localhost:{port}"
            await listening(address)
            yield f"{address}/o"
            reading.cancel()
    finally:
        if program.returncode is None:
            program.kill()
        await program.wait()


async def listening(address: str) -> None:
    """The provider says that it is ready before it listens."""
    async with httpx2.AsyncClient(timeout=60) as client:
        for _ in range(10_000):
            try:
                await client.get(f"{address}/login/")
            except httpx2.ConnectError:
                await asyncio.sleep(0)
            else:
                return


async def at_provider(browser: Browser, address: str, password: str) -> httpx2.Response:
    """Sign in with the provider's own form. Returns where it sends the browser."""
    asked = await browser.client.get(address)
    form_address = urljoin(address, asked.headers["location"])
    page = await browser.client.get(form_address)
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
    assert found is not None, page.text
    form = {"csrfmiddlewaretoken": found[1], "username": "alice", "password": password}
    return await browser.client.post(form_address, data=form, headers={"Referer": form_address})


async def test_people_sign_in_at_a_second_provider(client_python: Path) -> None:
    """It demands PKCE, and asks for a password. The groups give the role; signing out ends the session here."""
    port = free_port()
    issuer = f"http://localhost:{port}/o"
    oidc = OidcSettings(
        issuer=issuer,
        audience="denizen",
        sign_in=True,
        create_people=True,
        roles={"denizen-admins": "admin"},
        label="Django",
    )
    async with open_world("sqlite://") as world:
        await world.person("Olga")
        async with served(world, oidc=oidc, oidc_client_secret="hush") as house:
            world.denizen.public_url = house.address
            async with provider(client_python, port, house.address), Browser(house) as browser:
                begun = await browser.begin()
                assert begun.startswith(f"{issuer}/authorize/?")
                assert "code_challenge_method=S256" in begun
                wrong = await at_provider(browser, begun, "wrong")
                assert wrong.status_code == 200, "the form again"
                signed = await at_provider(browser, begun, "swordfish")
                back = await browser.client.get(urljoin(begun, signed.headers["location"]))
                headers = await browser.exchange(await browser.come_back(back.headers["location"]))
                me = (await browser.me(headers)).json()
                assert (me["handle"], me["name"], me["role"]) == ("alice", "Alice Ames", "admin")

                left = await browser.client.delete(f"{house.address}/api/session", headers=headers)
                assert left.status_code in (200, 204)
                assert (await browser.me(headers)).status_code == 401
