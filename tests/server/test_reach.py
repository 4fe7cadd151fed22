"""Beyond loopback: by which names, with TLS or behind a proxy that is named, and what of its words is believed."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from starlette.datastructures import Headers

from denizen.clock import ManualClock
from denizen.errors import InvalidInput, SettingsError
from denizen.server.context import ServerLimits
from denizen.server.rates import COUNTED, Rates
from denizen.server.reach import Reach, reach_of, visit_of
from denizen.server.serving import Tls, check_tls
from denizen.settings.loading import load
from denizen.settings.shape import Settings
from tests.server.conftest import House, served, session_headers
from tests.world import World, open_world

PROXY = ipaddress.ip_network("127.0.0.1/32")


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """A certificate for 127.0.0.1 that only its own file vouches for."""
    folder, key = tmp_path_factory.mktemp("tls"), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Denizen in a test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return Tls(folder / "cert.pem", folder / "key.pem")


async def test_the_server_speaks_https_by_itself(small_world: World, tls: Tls) -> None:
    """A client that knows the certificate believes it; the session's cookie is for HTTPS only."""
    noor = await small_world.person("Noor")
    async with served(small_world, tls=tls) as house:
        trusting = ssl.create_default_context(cafile=str(tls.certificate))
        async with httpx2.AsyncClient(base_url=house.address, verify=trusting, timeout=60) as client:
            answer = await client.get("/api/me", headers=await house.headers(noor))
            signed_in = await client.post("/api/session", json={"secret": house.secrets[noor.id]})
        assert answer.json()["handle"] == "noor"
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        cookie, organization = signed_in.headers.get_list("set-cookie")
        assert cookie.startswith("__Host-denizen=dzs_")
        assert cookie.endswith("; HttpOnly; SameSite=Strict; Secure")
        assert organization.startswith("__Host-denizen-organization=")
        assert organization.endswith("; Secure")
        sent = session_headers(house, signed_in) | {"Origin": house.address}
        assert (await house.call("POST", "/api/tokens", json={"name": "x"}, headers=sent)).status_code == 201
        plain = sent | {"Origin": house.address.replace("https", "http")}
        assert (await house.call("POST", "/api/tokens", json={"name": "x"}, headers=plain)).status_code == 403


@asynccontextmanager
async def connected(house: House) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection on which no TLS handshake was begun."""
    host, _, port = house.address.removeprefix("https://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()


@pytest.mark.parametrize("begun", [b"", b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n\r\n"])
async def test_a_tls_handshake_that_does_not_end_is_not_waited_for(small_world: World, tls: Tls, begun: bytes) -> None:
    """Whether nothing comes, a part of it, or something else."""
    async with (
        served(small_world, tls=tls, limits=ServerLimits(header_seconds=0.2)) as house,
        connected(house) as (reader, writer),
    ):
        writer.write(begun)
        with suppress(ConnectionError):
            await reader.read()


async def test_tls_handshakes_have_places_as_requests_have(small_world: World, tls: Tls) -> None:
    """Those beyond the limit of an address are told so once they have shaken hands; a place that is left is free."""
    limits = ServerLimits(connections_per_address=3, header_seconds=600)
    trusting = ssl.create_default_context(cafile=str(tls.certificate))
    async with served(small_world, tls=tls, limits=limits) as house, AsyncExitStack() as half_open:
        lines = [await half_open.enter_async_context(connected(house)) for _ in range(3)]

        async def ask() -> int:
            async with httpx2.AsyncClient(verify=trusting, timeout=60) as client:
                return (await client.get(f"{house.address}/healthz")).status_code

        assert await ask() == 429
        for reader, writer in lines:
            writer.write(b"This is not TLS.")
            with suppress(ConnectionError):
                await reader.read()
        assert await ask() == 200


async def test_the_server_ends_while_tls_handshakes_are_under_way(small_world: World, tls: Tls) -> None:
    async with AsyncExitStack() as half_open:
        async with served(small_world, tls=tls, limits=ServerLimits(header_seconds=600)) as house:
            lines = [await half_open.enter_async_context(connected(house)) for _ in range(5)]
        for reader, _ in lines:
            with suppress(ConnectionError):
                await reader.read()


def test_a_certificate_that_cannot_be_used_is_told(tls: Tls, tmp_path: Path) -> None:
    check_tls(tls)
    with pytest.raises(InvalidInput, match=r"nothing\.pem.* is not there"):
        check_tls(Tls(tmp_path / "nothing.pem", tls.key))
    with pytest.raises(InvalidInput, match="do not belong together"):
        check_tls(Tls(tls.key, tls.certificate))
    key = serialization.load_pem_private_key(tls.key.read_bytes(), None)
    (tmp_path / "locked.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
        )
    )
    with pytest.raises(InvalidInput, match="need a password"):
        check_tls(Tls(tls.certificate, tmp_path / "locked.pem"))


def visit(reach: Reach, peer: str, scheme: str = "http", **headers: str) -> tuple[str, bool, bool]:
    sent = Headers({name.replace("_", "-"): value for name, value in headers.items()})
    found = visit_of(reach, {"client": (peer, 1), "scheme": scheme}, sent)
    return found.address, found.secure, found.nearby


def test_what_a_proxy_says_is_believed_only_from_one_that_is_named() -> None:
    reach = Reach(proxies=(ipaddress.ip_network("10.0.0.5/32"), ipaddress.ip_network("172.16.0.0/12")))
    said = {"x_forwarded_for": "1.1.1.1", "x_forwarded_proto": "https"}
    assert visit(reach, "10.0.0.5", **said) == ("1.1.1.1", True, True)
    assert visit(reach, "10.0.0.6", **said) == ("10.0.0.6", False, False)
    assert visit(reach, "127.0.0.1", **said) == ("127.0.0.1", False, True)
    assert visit(Reach(), "127.0.0.1", **said) == ("127.0.0.1", False, True)
    assert visit(reach, "10.0.0.6", "https") == ("10.0.0.6", True, False)
    # What stands before the nearest address that is no proxy of ours, anyone may have written.
    assert visit(reach, "10.0.0.5", x_forwarded_for="6.6.6.6, 1.1.1.1, 172.16.3.4")[0] == "1.1.1.1"
    assert visit(reach, "10.0.0.5", x_forwarded_for="172.16.3.4")[0] == "10.0.0.5"
    assert visit(reach, "10.0.0.5", x_forwarded_proto="https, http")[1] is False


async def test_behind_a_named_proxy_its_words_count(small_world: World) -> None:
    """HTTPS outside makes the cookie one for HTTPS; pages of the public name are ours; other names are refused."""
    noor = await small_world.person("Noor")
    reach = Reach(frozenset({"agents.example.com"}), (PROXY,), "https://agents.example.com")
    async with served(small_world, reach=reach) as house:
        forwarded = {"Host": "agents.example.com", "X-Forwarded-Proto": "https", "X-Forwarded-For": "1.1.1.1"}
        secret = await house.token(noor)
        answer = await house.call("POST", "/api/session", json={"secret": secret}, headers=forwarded)
        assert answer.status_code == 201
        assert "strict-transport-security" in answer.headers
        cookie = answer.headers["set-cookie"].partition(";")[0]
        assert cookie.startswith("__Host-denizen=")
        ours = forwarded | session_headers(house, answer) | {"Origin": "https://agents.example.com"}
        assert (await house.call("POST", "/api/tokens", json={"name": "x"}, headers=ours)).status_code == 201
        for host, status in [("evil.example", 421), ("agents.example.com.", 200), ("AGENTS.example.com:443", 200)]:
            answer = await house.call("GET", "/healthz", headers=forwarded | {"Host": host})
            assert answer.status_code == status, host
        assert "agents.example.com" in (await house.call("GET", "/healthz", headers={"Host": "x"})).json()["detail"]


async def test_beyond_loopback_nobody_passes_the_proxy_by(small_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not HTTPS, and comes neither from this machine nor through the proxy, could be read on the way."""
    noor = await small_world.person("Noor")
    reach = Reach(frozenset({"agents.example.com"}), (ipaddress.ip_network("10.9.9.9/32"),))
    # Every test comes from loopback: here it counts as any other address.
    monkeypatch.setattr("denizen.server.reach.is_loopback", lambda host: False)
    async with served(small_world, reach=reach) as house:
        answer = await house.call("GET", "/api/me", noor, headers={"Host": "agents.example.com"})
    assert (answer.status_code, answer.json()["code"]) == (421, "host_refused")


def reach_by(tmp_path: Path, **environ: str) -> Reach:
    return reach_of(load(environ={"HOME": str(tmp_path), **environ}, folder=tmp_path).settings)


def test_how_far_settings_let_the_server_be_reached(tmp_path: Path) -> None:
    assert reach_by(tmp_path) == Reach()
    with pytest.raises(SettingsError, match=r"tls\.certificate.*trusted_proxy.*127\.0\.0\.1"):
        reach_by(tmp_path, DENIZEN_HOST="0.0.0.0")
    with pytest.raises(SettingsError, match="public_url"):
        reach_by(tmp_path, DENIZEN_HOST="::", DENIZEN_TRUSTED_PROXY="10.0.0.5")
    proxied = {"DENIZEN_HOST": "0.0.0.0", "DENIZEN_TRUSTED_PROXY": "10.0.0.5, 172.16.0.0/12"}
    found = reach_by(tmp_path, **proxied, DENIZEN_PUBLIC_URL="https://Agents.example.com", DENIZEN_ALLOWED_HOSTS="b.c")
    assert found.hosts == {"agents.example.com", "b.c"}
    assert found.origin == "https://agents.example.com"
    assert found.trusts("172.20.0.1")
    assert not found.trusts("10.0.0.6")
    tls = {"DENIZEN_TLS__CERTIFICATE": "c.pem", "DENIZEN_TLS__KEY": "k.pem"}
    assert reach_by(tmp_path, DENIZEN_HOST="192.168.1.5", **tls).hosts == {"192.168.1.5"}
    for wrong, says in [
        ({"DENIZEN_TLS__KEY": "k.pem"}, r"tls\.certificate is not: set both"),
        ({"DENIZEN_TRUSTED_PROXY": "proxy.local"}, "a list of addresses"),
        ({"DENIZEN_ALLOWED_HOSTS": "https://a.b"}, "a list of host names"),
        ({"DENIZEN_OIDC__ISSUER": "https://a.b"}, r"oidc\.audience is not"),
        ({"DENIZEN_LIMITS__REQUESTS_PER_MINUTE": "-1"}, "a whole number"),
    ]:
        with pytest.raises(SettingsError, match=says):
            reach_by(tmp_path, **wrong)


# How often


def test_a_bucket_of_tries_fills_with_time() -> None:
    clock = ManualClock()
    rates = Rates(6, clock)
    assert [rates.take("a") for _ in range(6)] == [0] * 6
    assert rates.take("a") == pytest.approx(10)
    assert rates.take("b") == 0
    clock.advance(5)
    assert rates.wait("a") == pytest.approx(5)
    clock.advance(5)
    assert (rates.take("a"), rates.wait("a")) == (0, pytest.approx(10))
    clock.advance(10_000)
    assert [rates.take("a") for _ in range(7)].count(0) == 6
    assert all(Rates(0, clock).take("a") == 0 for _ in range(100))


def test_only_so_many_askers_are_counted() -> None:
    rates = Rates(1, ManualClock())
    for number in range(COUNTED + 10):
        rates.take(str(number))
    assert len(rates._buckets) == COUNTED
    assert rates.wait(str(COUNTED + 9)) > 0


async def _tries(house: House, secret: str, count: int = 1, address: str = "1.1.1.1") -> list[int]:
    headers = {"Authorization": f"Bearer {secret}", "X-Forwarded-For": address}
    return [(await house.call("GET", "/api/me", headers=headers)).status_code for _ in range(count)]


async def test_wrong_secrets_are_heard_only_so_often_from_one_address(small_world: World) -> None:
    """Whoever was in before stays in; other addresses do not suffer; after a while it is heard again."""
    noor = await small_world.person("Noor")
    async with served(
        small_world, limits=ServerLimits(failed_logins_per_minute=3), reach=Reach(proxies=(PROXY,))
    ) as house:
        known, later = await house.token(noor), await house.token(noor)
        assert await _tries(house, known) == [200]
        assert await _tries(house, "dz_wrong", 5) == [401, 401, 401, 429, 429]
        assert await _tries(house, known) == [200]
        assert await _tries(house, later) == [429]
        signing_in = await house.call(
            "POST", "/api/session", json={"secret": later}, headers={"X-Forwarded-For": "1.1.1.1"}
        )
        assert (signing_in.status_code, signing_in.json()["code"]) == (429, "rate_limited")
        assert signing_in.headers["retry-after"] == "20"
        assert await _tries(house, later, address="2.2.2.2") == [200]
        small_world.clock.advance(20)
        assert await _tries(house, "dz_wrong", 2) == [401, 429]


async def test_a_token_may_ask_only_so_often(small_world: World) -> None:
    noor, sam = await small_world.person("Noor"), await small_world.person("Sam")
    async with served(small_world, limits=ServerLimits(requests_per_minute=2)) as house:

        async def ask(who) -> int:
            return (await house.call("GET", "/api/me", who)).status_code

        assert [await ask(noor), await ask(noor), await ask(noor), await ask(sam)] == [200, 200, 429, 200]
        small_world.clock.advance(30)
        assert [await ask(noor), await ask(noor)] == [200, 429]
        assert (await house.call("GET", "/healthz")).status_code == 200


async def test_a_public_url_with_a_path_is_served_with_and_without_it(ready_sqlite_url: str) -> None:
    """A proxy may remove the path or not. Addresses that the server makes begin with it."""
    settings = Settings(public_url="https://example.com/town/")
    reach = reach_of(settings)
    assert (reach.path, reach.origin) == ("/town", "https://example.com")
    async with (
        open_world(ready_sqlite_url, public_url="https://example.com/town") as world,
        served(world, reach=Reach(path="/town")) as house,
    ):
        noor = await world.person("Noor")
        login = (await house.call("POST", "/town/api/logins", noor, json={})).json()
        inside, outside = [await house.call("GET", f"{path}/api/me", noor) for path in ("", "/town")]
        other = await house.call("GET", "/townhall/api/me", noor)
        page = await house.call("GET", "/town/s/1", headers={"Accept": "text/html"})
        models = await house.call("GET", "/town/v1/models", noor)
        refused = await house.call("GET", "/town/v1/models")
    assert login["url"].startswith("https://example.com/town/login#")
    assert inside.json() == outside.json()
    assert other.status_code == 404
    assert 'src="/town/assets/' in page.text
    assert 'content="/town/"' in page.text
    assert models.status_code == 200
    assert "error" in refused.json()
