"""Signing in with a browser at an identity provider: `oidc-provider-mock` in a process of its own, and a stand-in that
can be told to lie."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx2
import jwt
import pytest
from aiohttp import web

from denizen.access import identities, roles
from denizen.access.oidc_sign_in import challenge, kept_attempt, new_attempt, role_of_groups
from denizen.clock import SECOND
from denizen.settings.shape import OidcSettings
from denizen.spaces import directory
from denizen.storage.database import Tx
from tests.server.conftest import House, served
from tests.server.test_oidc import AUDIENCE, RSA, public
from tests.servers import free_port
from tests.world import World, open_world

READY_SECONDS = 60


@asynccontextmanager
async def real_provider() -> AsyncGenerator[str]:
    """The provider, as anybody would start it."""
    port = free_port()
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert program.stderr is not None
    try:
        async with asyncio.timeout(READY_SECONDS):
            async for line in program.stderr:
                if b"http://" in line:
                    break
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(program.stderr.read())  # otherwise it would wait for a reader of its log
            yield f"http://localhost:{port}"
            reading.cancel()
    finally:
        if program.returncode is None:
            program.kill()
        await program.wait()


@asynccontextmanager
async def house_with(world: World, issuer: str, **settings: Any) -> AsyncGenerator[House]:
    oidc = OidcSettings(issuer=issuer, audience=AUDIENCE, sign_in=True, **settings)
    async with served(world, oidc=oidc, oidc_client_secret="hush") as house:
        world.denizen.public_url = house.address
        yield house


def count_people(tx: Tx) -> int:
    return sum(len(directory.list_entities(tx, each.id)) for each in directory.list_organizations(tx))


class Browser:
    """A browser without scripts: it keeps cookies, and follows what it is told to follow."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.client = httpx2.AsyncClient(timeout=60)

    async def __aenter__(self) -> Browser:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.client.__aexit__(None, None, None)

    async def begin(self) -> str:
        """The address of the provider that it is sent to."""
        answer = await self.client.get(f"{self.house.address}/login/oidc")
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    async def consent(self, address: str, subject: str) -> str:
        """The address that the provider sends it back to."""
        answer = await self.client.post(address, data={"sub": subject})
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    async def come_back(self, address: str) -> httpx2.Response:
        return await self.client.get(address)

    async def sign_in(self, subject: str) -> httpx2.Response:
        return await self.come_back(await self.consent(await self.begin(), subject))

    async def exchange(self, answer: httpx2.Response) -> dict[str, str]:
        """What the sign-in page does with the secret behind the #; the headers of its requests from then on."""
        assert answer.status_code == 303, answer.text
        page, _, secret = answer.headers["location"].partition("#")
        assert page == f"{self.house.address}/login"
        origin = {"Origin": self.house.address}
        opened = await self.client.post(f"{self.house.address}/api/session", json={"secret": secret}, headers=origin)
        assert opened.status_code == 201, opened.text
        return {"Denizen-Page-Key": opened.json()["page_key"]} | origin

    async def me(self, headers: dict[str, str]) -> httpx2.Response:
        return await self.client.get(f"{self.house.address}/api/me", headers=headers)


async def tell_provider(address: str, subject: str, **claims: Any) -> None:
    async with httpx2.AsyncClient(timeout=60) as client:
        told = await client.put(f"{address}/users/{quote(subject)}", json={"sub": subject, **claims})
        assert told.status_code == 204, told.text


async def test_people_sign_in_at_a_real_provider() -> None:
    """Whoever comes becomes a member, with the role of their groups; the session is one like any other."""
    groups = {"denizen-admins": "admin", "denizen-owners": "owner"}
    async with open_world("sqlite://") as world, real_provider() as provider:
        owner = await world.person("Olga")
        async with house_with(world, provider, create_people=True, roles=groups, label="Example") as house:
            await tell_provider(
                provider, "alice@example.com", name="Alice", preferred_username="alice", groups=["x", "denizen-admins"]
            )
            options = (await house.call("GET", "/api/sign-in")).json()["provider"]
            assert (options["name"], options["sign_in"]) == ("Example", "/login/oidc")
            async with Browser(house) as browser:
                headers = await browser.exchange(await browser.sign_in("alice@example.com"))
                me = (await browser.me(headers)).json()
                assert (me["handle"], me["name"], me["role"]) == ("alice", "Alice", "admin")
                assert me["token"]["kind"] == "session"

                # Another day, with other groups.
                await tell_provider(provider, "alice@example.com", name="Alice", preferred_username="alice")
                again = await browser.exchange(await browser.sign_in("alice@example.com"))
                assert (await browser.me(again)).json()["role"] == "member"
                [alice] = await world.denizen.db.read(identities.identities_of, me["id"])
                assert alice.subject == "alice@example.com"

                # Signing out ends this session; who is unlinked is signed out everywhere.
                gone = await browser.client.delete(f"{house.address}/api/session", headers=again)
                assert gone.status_code == 204
                assert (await browser.me(again)).status_code == 401
                third = await browser.exchange(await browser.sign_in("alice@example.com"))
                which = {"issuer": provider, "subject": "alice@example.com"}
                unlinked = await house.call("DELETE", f"/api/entities/{me['id']}/identities", owner, params=which)
                assert unlinked.status_code == 204, unlinked.text
                assert (await browser.me(third)).status_code == 401
            log = (await house.call("GET", "/api/audit", owner)).json()["entries"]
            assert {"open_session", "change_entity"} <= {each["action"] for each in log}


async def test_who_denies_or_is_unknown_is_told_so() -> None:
    async with open_world("sqlite://") as world, real_provider() as provider:
        await world.person("Olga")
        async with house_with(world, provider) as house, Browser(house) as browser:
            address = await browser.begin()
            denied = await browser.client.post(address, data={"action": "deny"})
            # The provider leaves out the state of whom it refuses: that is no answer to us.
            page = await browser.come_back(denied.headers["location"])
            assert (page.status_code, "Sign-in failed" in page.text) == (400, True)
            unknown = await browser.sign_in("bob@example.com")
            assert unknown.status_code == 401
            assert "bob@example.com" in unknown.text
            assert "Ask an admin to link yours." in unknown.text


# A provider that can be told to lie


class Liar:
    """An identity provider whose every answer can be changed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.address = ""
        self.claims: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.forms: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.nonce = ""
        self.refuses = False

    async def answer(self, request: web.Request) -> web.Response:
        match request.path:
            case "/.well-known/openid-configuration":
                names = ("authorization", "token", "end_session")
                found = {f"{name}_endpoint": f"{self.address}/{name}" for name in names}
                return web.json_response(
                    {"issuer": self.address, "jwks_uri": f"{self.address}/keys", **found} | self.metadata
                )
            case "/keys":
                return web.json_response({"keys": [public(RSA, "one")]})
            case _:
                self.forms.append({name: str(value) for name, value in (await request.post()).items()})
                self.headers.append(dict(request.headers))
                if self.refuses:
                    return web.json_response({"error": "invalid_grant"}, status=400)
                return web.json_response({"id_token": self.token()})

    def token(self) -> str:
        now = self.world.clock.now() // SECOND
        said = {
            "iss": self.address,
            "aud": AUDIENCE,
            "sub": "7",
            "exp": now + 600,
            "nonce": self.nonce,
            "name": "Mallory",
        }
        kept = {name: value for name, value in (said | self.claims).items() if value is not None}
        return jwt.encode(kept, RSA, algorithm="RS256", headers={"kid": "one"})


@asynccontextmanager
async def lying(world: World) -> AsyncGenerator[Liar]:
    liar, app = Liar(world), web.Application()
    app.router.add_route("*", "/{any:.*}", liar.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    liar.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield liar
    finally:
        await runner.cleanup()


@asynccontextmanager
async def two_of_them(**settings: Any) -> AsyncGenerator[tuple[House, Liar, Browser]]:
    async with (
        open_world("sqlite://") as world,
        lying(world) as liar,
        house_with(world, liar.address, create_people=True, **settings) as house,
        Browser(house) as browser,
    ):
        await world.person("Olga")
        yield house, liar, browser


async def asked(browser: Browser) -> dict[str, str]:
    """What the provider is asked."""
    return {name: value for name, [value] in parse_qs(urlsplit(await browser.begin()).query).items()}


def answer_to(said: dict[str, str]) -> str:
    """The address that a browser is sent back to with a code."""
    return f"{said['redirect_uri']}?code=c&state={said['state']}"


async def test_the_code_is_redeemed_with_the_secrets_of_the_attempt() -> None:
    async with two_of_them() as (house, liar, browser):
        said = await asked(browser)
        assert (said["response_type"], said["client_id"], said["scope"]) == ("code", AUDIENCE, "openid profile email")
        assert (said["redirect_uri"], said["code_challenge_method"]) == (f"{house.address}/login/oidc/callback", "S256")
        liar.nonce = said["nonce"]
        back = f"{said['redirect_uri']}?code=c&state={said['state']}&iss={quote(liar.address)}"
        await browser.exchange(await browser.come_back(back))
        [form], [headers] = liar.forms, liar.headers
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == said["code_challenge"]
        assert (form["grant_type"], form["code"], form["redirect_uri"]) == (
            "authorization_code",
            "c",
            said["redirect_uri"],
        )
        assert headers["Authorization"] == f"Basic {base64.b64encode(b'denizen:hush').decode()}"
        assert "client_secret" not in form
        # The attempt is over: its cookie is gone, and the same answer is good for nothing.
        assert (await browser.come_back(back)).status_code == 400
        assert len(liar.forms) == 1


async def test_the_secret_goes_into_the_form_where_the_provider_wants_it_there() -> None:
    async with two_of_them() as (_, liar, browser):
        liar.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
        said = await asked(browser)
        liar.nonce = said["nonce"]
        await browser.exchange(await browser.come_back(answer_to(said)))
        assert (liar.forms[0]["client_id"], liar.forms[0]["client_secret"]) == (AUDIENCE, "hush")


@pytest.mark.parametrize("state", ["", "x", "wrong" * 9])
async def test_an_answer_without_the_state_of_this_browser_is_refused(state: str) -> None:
    """An attacker who sends somebody their own code signs nobody in as the attacker."""
    async with two_of_them() as (house, liar, browser):
        said = await asked(browser)
        liar.nonce = said["nonce"]
        answer = await browser.come_back(f"{said['redirect_uri']}?code=c&state={state}")
        assert (answer.status_code, liar.forms) == (400, [])
        async with Browser(house) as other:
            stolen = await other.come_back(answer_to(said))
        assert (stolen.status_code, liar.forms) == (400, [])


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "of another attempt"},
        {"nonce": None},
        {"iss": "https://other.example"},
        {"aud": "another program"},
        {"exp": 1},
        {"sub": None},
    ],
)
async def test_a_token_that_is_not_for_this_attempt_signs_nobody_in(claims: dict[str, Any]) -> None:
    async with two_of_them() as (house, liar, browser):
        said = await asked(browser)
        liar.nonce, liar.claims = said["nonce"], claims
        answer = await browser.come_back(answer_to(said))
        assert (answer.status_code, "could not be verified" in answer.text) == (401, True)
        assert await house.world.denizen.db.read(count_people) == 1


async def test_what_the_provider_says_of_failures_is_shown_and_cannot_be_markup() -> None:
    async with two_of_them() as (_, liar, browser):
        said = await asked(browser)
        back = f"{said['redirect_uri']}?state={said['state']}&error=access_denied&error_description=<script>no"
        page = await browser.come_back(back)
        assert (page.status_code, "<script>" in page.text) == (400, False)
        assert "did not sign you in: &lt;script&gt;no." in page.text
        said = await asked(browser)
        other = await browser.come_back(f"{said['redirect_uri']}?code=c&state={said['state']}&iss=https://x.example")
        assert "Another identity provider has answered" in other.text
        said, liar.refuses = await asked(browser), True
        refused = await browser.come_back(answer_to(said))
        assert refused.status_code == 401


async def test_a_provider_without_pkce_or_that_is_down_is_told() -> None:
    async with two_of_them() as (_, liar, browser):
        liar.metadata = {"code_challenge_methods_supported": ["plain"]}
        answer = await browser.client.get(f"{browser.house.address}/login/oidc")
        assert (answer.status_code, "does not support PKCE" in answer.text) == (503, True)
        liar.metadata = {"authorization_endpoint": "javascript:alert(1)"}
        assert (await browser.client.get(f"{browser.house.address}/login/oidc")).status_code == 503


async def test_signing_out_at_the_provider_as_well() -> None:
    async with two_of_them() as (house, liar, browser):
        answer = await browser.client.get(f"{house.address}/login/oidc/logout")
        back = quote(f"{house.address}/login", safe="")
        expected = f"{liar.address}/end_session?client_id=denizen&post_logout_redirect_uri={back}"
        assert answer.headers["location"] == expected


async def test_the_last_owner_stays_owner(small_world: World) -> None:
    """Groups of a provider cannot leave an organization without an owner."""
    async with lying(small_world) as liar, house_with(small_world, liar.address, roles={"a": "admin"}) as house:
        olga = await small_world.person("Olga")
        await small_world.denizen.db.write(identities.link, olga.id, liar.address, "7")
        async with Browser(house) as browser:
            said = await asked(browser)
            liar.nonce, liar.claims = said["nonce"], {"groups": "a"}
            headers = await browser.exchange(await browser.come_back(answer_to(said)))
            assert (await browser.me(headers)).json()["role"] == "owner"
            mia = await small_world.person("Mia")
            await small_world.denizen.db.write(roles.set_role, mia.id, "owner")
            said = await asked(browser)
            liar.nonce = said["nonce"]
            headers = await browser.exchange(await browser.come_back(answer_to(said)))
            assert (await browser.me(headers)).json()["role"] == "admin"


async def test_without_the_setting_there_is_nothing(small_house: House) -> None:
    assert (await small_house.call("GET", "/api/sign-in")).json() == {"provider": None}
    for path in ("/login/oidc", "/login/oidc/callback", "/login/oidc/logout"):
        answer = await small_house.call("GET", path, headers={"Accept": "text/html"})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path


def test_an_attempt_is_kept_and_found_again() -> None:
    attempt = new_attempt()
    assert kept_attempt(attempt.cookie_value) == attempt
    assert attempt != new_attempt()
    for wrong in ("", "a.b.c", attempt.state, f"{attempt.cookie_value}.x", attempt.cookie_value + "\n"):
        assert kept_attempt(wrong) is None
    # The example of RFC 7636, appendix B.
    assert challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert re.fullmatch(r"[\w-]{43}", attempt.verifier)


def test_the_highest_role_of_the_groups_counts() -> None:
    given: Any = {"staff": "member", "ops": "admin", "root": "owner"}
    assert role_of_groups(["ops", "staff", "other"], given) == "admin"
    assert role_of_groups(["root", "ops"], given) == "owner"
    assert role_of_groups(["other"], given) == "member"
