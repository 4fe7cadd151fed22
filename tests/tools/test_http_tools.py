"""HTTP tools against a real server: where a request may go, what it carries, and what the model is told."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from denizen.errors import AddressRefused, InvalidInput, ToolFailed
from denizen.ids import AgentId, CycleId
from denizen.tools import http
from denizen.tools.addresses import Address, resolve
from denizen.tools.http import LONGEST, http_tool
from denizen.tools.outbound import Outbound
from denizen.tools.results import Output, ToolFile
from denizen.tools.settings import HttpTool
from denizen.tools.tool import CallIdentity, OutsideTool

OCCASION = CallIdentity(AgentId("agent"), CycleId("cycle"), 2, 1, "call-7")
LOCAL: Sequence[Address] = [ipaddress.ip_address("127.0.0.1")]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Service:
    """A server on loopback: what it was asked, and how it answers."""

    port: int = 0
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    answers: dict[str, Handler] = field(default_factory=dict)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.method, request.raw_path, _titled(request), await request.read()))
        if request.path in self.answers:
            return await self.answers[request.path](request)
        return web.json_response({"ok": True})

    def redirect(self, path: str, status: int, location: str) -> None:
        async def onward(_: web.Request) -> web.StreamResponse:
            return web.Response(status=status, headers={"Location": location})

        self.answers[path] = onward

    def says(self, path: str, **response: Any) -> None:
        async def reply(_: web.Request) -> web.StreamResponse:
            return web.Response(**response)

        self.answers[path] = reply


def _titled(request: web.Request) -> dict[str, str]:
    return {name.title(): value for name, value in request.headers.items()}


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    state = Service()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", state.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    state.port = runner.addresses[0][1]
    yield state
    await runner.cleanup()


@pytest.fixture
async def outbound() -> AsyncIterator[Outbound]:
    async with Outbound(resolve=names) as open_:
        yield open_


async def names(host: str, port: int) -> Sequence[Address]:
    """A resolver of our own: every name that ends in .example is this machine."""
    return LOCAL if host.endswith(".example") else await resolve(host, port)


def request(outbound: Outbound, url: str, *arguments: str, **settings: Any) -> OutsideTool:
    """A tool whose arguments are all texts, allowed to reach this machine unless told otherwise."""
    secrets: dict[str, str] = settings.pop("secrets", {})
    where: str | None = settings.pop("answer_to", None)
    answer_to = None if where is None else (lambda call_id: where.replace("{call_id}", call_id))
    properties = {name: {"type": ["string", "number", "boolean", "array", "null"]} for name in arguments}
    settings.setdefault("allow_private", ("127.0.0.1", "home.example"))
    settings.setdefault("parameters", {"type": "object", "properties": properties, "additionalProperties": False})
    made = HttpTool(name="ask", description="Ask.", url=url, **settings)
    return http_tool(made, secret=secrets.get, outbound=outbound, answer_to=answer_to)


async def use(tool: OutsideTool, **arguments: Any) -> str:
    told = await tool.call(tool.check(arguments), OCCASION)
    assert isinstance(told, str)
    return told


# What is sent


async def test_arguments_stand_in_the_url_and_the_rest_in_the_query(service: Service, outbound: Outbound):
    tool = request(outbound, service.url("/rooms/{city}?quiet={quiet}&floor={floor}"), "city", "quiet", "floor", "page")
    assert json.loads(await use(tool, city="Bad Öl/?#&=%2F", quiet=True, page=2)) == {"ok": True}
    method, path, headers, body = service.asked[0]
    assert (method, path, body) == ("GET", "/rooms/Bad%20%C3%96l%2F%3F%23%26%3D%252F?quiet=true&page=2", b"")
    assert "Idempotency-Key" not in headers


async def test_a_post_sends_the_rest_as_json_under_the_key_of_its_call(service: Service, outbound: Outbound):
    tool = request(outbound, service.url("/rooms/{city}"), "city", "guests", "note", method="POST")
    await use(tool, city="Oslo", guests=["Ada", "Noor"], note=None)
    method, path, headers, body = service.asked[0]
    assert (method, path, json.loads(body)) == ("POST", "/rooms/Oslo", {"guests": ["Ada", "Noor"], "note": None})
    assert headers["Content-Type"] == "application/json"
    assert headers["Idempotency-Key"] == OCCASION.key
    assert headers["Host"] == f"127.0.0.1:{service.port}"
    assert not {"Denizen-Call-Id", "Denizen-Answer-To"} & headers.keys()


async def test_a_form_and_a_query_say_a_list_several_times(service: Service, outbound: Outbound):
    for body in ("form", "none"):
        await use(request(outbound, service.url("/"), "guests", method="POST", body=body), guests=["Ada", "Noor & co"])
    (_, _, headers, form), (_, path, _, nothing) = service.asked
    assert (headers["Content-Type"], form) == ("application/x-www-form-urlencoded", b"guests=Ada&guests=Noor+%26+co")
    assert (path, nothing) == ("/?guests=Ada&guests=Noor+%26+co", b"")


async def test_an_asynchronous_request_says_where_its_answer_is_taken(service: Service, outbound: Outbound):
    where = "https://denizen.example/api/calls/{call_id}"
    tool = request(outbound, service.url("/work"), method="POST", mode="async", answer_to=where)
    assert tool.mode == "async"
    await use(tool)
    headers = service.asked[0][2]
    assert headers["Denizen-Call-Id"] == "call-7"
    assert headers["Denizen-Answer-To"] == "https://denizen.example/api/calls/call-7"


async def test_work_that_was_not_taken_has_failed(service: Service, outbound: Outbound):
    service.says("/work", status=503, text="full")
    with pytest.raises(ToolFailed, match="HTTP 503 Service Unavailable: full"):
        await use(request(outbound, service.url("/work"), method="POST", mode="async"))


@pytest.mark.parametrize("value", [".", "..", "../secrets", "a/../../b", "..\\b", "%2e%2e", "x\n", ""])
async def test_an_argument_cannot_lead_to_another_path(service: Service, outbound: Outbound, value: str):
    with pytest.raises(InvalidInput, match="ask was not called"):
        await use(request(outbound, service.url("/rooms/{city}/price"), "city"), city=value)
    assert service.asked == []


async def test_two_arguments_cannot_make_one_step_up_together(service: Service, outbound: Outbound):
    with pytest.raises(InvalidInput):
        await use(request(outbound, service.url("/rooms/.{end}/price"), "end"), end="x/.")
    with pytest.raises(InvalidInput):
        await use(request(outbound, service.url("/rooms/{a}{b}"), "a", "b"), a=".", b=".")
    assert service.asked == []


@given(st.text(min_size=1))
def test_whatever_the_argument_the_url_keeps_its_shape(value: str):
    settings = HttpTool(
        name="ask",
        description="Ask.",
        url="https://shop.example/rooms/{city}/price?for={city}&unit=eur",
        parameters={"type": "object", "properties": {"city": {"type": "string"}}},
    )
    try:
        url = http._address(settings, {"city": value}, {})
    except (InvalidInput, UnicodeEncodeError):
        return
    assert (url.scheme, url.host, url.port, url.userinfo) == ("https", "shop.example", None, b"")
    before, mark, after = url.raw_path.partition(b"?")
    assert mark
    assert [before.split(b"/")[at] for at in (0, 1, 3)] == [b"", b"rooms", b"price"]
    assert before.count(b"/") == 3
    assert after.count(b"&") == 1
    assert after.endswith(b"&unit=eur")
    assert url.params["for"] == value


# What the model is told


@pytest.mark.parametrize(
    ("response", "told"),
    [
        ({"text": "Grüße", "charset": "latin-1"}, "Grüße"),
        ({"body": b'{"a":  1}', "content_type": "application/json"}, '{"a":  1}'),
        ({"body": b"<a/>", "content_type": "application/atom+xml"}, "<a/>"),
        ({"body": b"gr\xc3\xbc", "headers": {"Content-Type": ""}}, "grü"),
        ({"body": b"\xff\xfe\x00", "headers": {"Content-Type": ""}}, "[no text, 3 bytes]"),
        ({"status": 204}, "HTTP 204 No Content"),
        ({"status": 404, "text": "no such room"}, "HTTP 404 Not Found: no such room"),
        ({"status": 500}, "HTTP 500 Internal Server Error"),
        ({"status": 302}, "HTTP 302 Found"),
        (
            {"body": gzip.compress(b"small"), "headers": {"Content-Encoding": "gzip", "Content-Type": "text/plain"}},
            "small",
        ),
        (
            {"body": b"??", "headers": {"Content-Encoding": "br", "Content-Type": "text/plain"}},
            "[text/plain, 2 bytes]",
        ),
    ],
)
async def test_the_model_is_told_the_body_or_what_it_is(
    service: Service, outbound: Outbound, response: dict[str, Any], told: str
):
    service.says("/", **response)
    assert await use(request(outbound, service.url("/"))) == told


@pytest.mark.parametrize(
    ("path", "headers", "body", "name"),
    [
        ("/pictures/cat", {"Content-Type": "image/png"}, b"\x89PNG", "cat.png"),
        ("/", {"Content-Type": "image/png"}, b"\x89PNG", "file.png"),
        ("/a%20b.pdf", {"Content-Type": "application/pdf"}, b"%PDF", "a b.pdf"),
        (
            "/x",
            {"Content-Type": "application/zip", "Content-Disposition": 'attachment; filename="all.zip"'},
            b"PK",
            "all.zip",
        ),
        ("/x.gz", {"Content-Type": "image/x-raw", "Content-Encoding": "gzip"}, gzip.compress(b"raw", mtime=0), "x.gz"),
    ],
)
async def test_an_answer_that_is_no_text_is_a_file(
    service: Service, outbound: Outbound, path: str, headers: dict[str, str], body: bytes, name: str
):
    service.says(path.replace("%20", " "), body=body, headers=headers)
    made = request(outbound, service.url(path))
    told = await made.call(made.check({}), OCCASION)
    data = b"raw" if "Content-Encoding" in headers else body
    assert told == Output("", (ToolFile(data, name, headers["Content-Type"]),))


async def test_a_file_that_holds_a_secret_is_only_named(service: Service, outbound: Outbound):
    service.says("/", body=b"\x00topsecret\x00", content_type="application/octet-stream")
    made = request(outbound, service.url("/"), headers={"X-Key": "${KEY}"}, secrets={"KEY": "topsecret"})
    assert await use(made) == "[application/octet-stream, 11 bytes]"


async def test_a_long_answer_is_cut_and_the_rest_is_not_read(service: Service, outbound: Outbound):
    left = asyncio.Event()

    async def endless(asked: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(asked)
        try:
            while True:
                await response.write(b"x" * 65_536)
        finally:
            left.set()

    service.answers["/"] = endless
    told = await use(request(outbound, service.url("/")))
    assert told.startswith("x" * LONGEST + "\n… [")
    await left.wait()


async def test_a_small_body_cannot_unpack_to_a_large_one(service: Service, outbound: Outbound):
    packed = gzip.compress(b"0" * 50_000_000)
    service.says("/", body=packed, headers={"Content-Encoding": "gzip", "Content-Type": "text/plain"})
    assert len(await use(request(outbound, service.url("/")))) < LONGEST + 200


async def test_a_broken_connection_leaves_the_outcome_unknown_and_a_missing_server_does_not(
    service: Service, outbound: Outbound
):
    async def hang_up(asked: web.Request) -> web.StreamResponse:
        assert asked.transport is not None
        asked.transport.abort()
        return web.Response()

    service.answers["/"] = hang_up
    with pytest.raises(ToolFailed, match=r"broke before it had answered\. Whether it did what was asked is unknown\."):
        await use(request(outbound, service.url("/"), method="POST"))
    with pytest.raises(ToolFailed, match="The request was not sent"):
        await use(request(outbound, "http://127.0.0.1:1/", method="POST"))


# Secrets


async def test_a_secret_goes_out_in_its_header_and_never_comes_back(service: Service, outbound: Outbound):
    async def echo(asked: web.Request) -> web.StreamResponse:
        return web.json_response(_titled(asked), status=int(asked.query.get("status", "200")))

    service.answers["/"] = echo
    headers = {"X-Key": "v1 ${SHOP_KEY}", "X-Plain": "plain"}
    secrets = {"SHOP_KEY": 'quo"ted-ol'}
    for status in ("200", "400"):
        tool = request(outbound, service.url("/?status={s}"), "s", headers=headers, secrets=secrets)
        told = await use(tool, s=status)
        assert service.asked[-1][2]["X-Key"] == 'v1 quo"ted-ol'
        assert '"X-Key": "v1 •••"' in told
        assert "quo" not in told


async def test_a_secret_at_the_cut_is_hidden_too(service: Service, outbound: Outbound):
    secret = "very-secret-indeed"
    service.says("/", text="x" * (LONGEST - 5) + secret * 2_000)
    tool = request(outbound, service.url("/"), headers={"X-Key": "${KEY}"}, secrets={"KEY": secret})
    assert "very" not in await use(tool)


async def test_a_missing_or_unusable_secret_is_told_by_its_name(service: Service, outbound: Outbound):
    headers = {"X-Key": "${SHOP_KEY}"}
    with pytest.raises(ToolFailed, match="The secret SHOP_KEY is not set here"):
        await use(request(outbound, service.url("/"), headers=headers))
    with pytest.raises(ToolFailed, match="The header X-Key cannot be sent") as failed:
        await use(request(outbound, service.url("/"), headers=headers, secrets={"SHOP_KEY": "abc\r\nX-Evil: 1"}))
    assert "Evil" not in str(failed.value)
    assert service.asked == []


# Private addresses


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[::1]"])
async def test_this_machine_is_refused_in_every_spelling(service: Service, outbound: Outbound, host: str):
    with pytest.raises(AddressRefused, match="may not reach private addresses"):
        await use(request(outbound, service.url("/", host), allow_private=()))
    assert service.asked == []


async def test_a_name_that_means_this_machine_is_refused_unless_allowed(service: Service, outbound: Outbound):
    with pytest.raises(AddressRefused):
        await use(request(outbound, service.url("/", "home.example"), allow_private=("other.example",)))
    with pytest.raises(AddressRefused):
        await use(request(outbound, service.url("/", "home.example"), allow_private=("home.example:1",)))
    await use(request(outbound, service.url("/", "home.example"), allow_private=(f"home.example:{service.port}",)))
    assert service.asked[0][2]["Host"] == f"home.example:{service.port}"
    # A connection that stays open for the one tool does not serve the other.
    with pytest.raises(AddressRefused):
        await use(request(outbound, service.url("/", "home.example"), allow_private=()))
    assert len(service.asked) == 1


async def test_a_name_cannot_mean_another_address_to_the_connection_than_to_the_check(service: Service):
    """DNS rebinding: a name is asked for once, and what was answered then is both checked and connected to."""
    answers = [LOCAL, [ipaddress.ip_address("127.0.0.9")]]

    async def rebinding(host: str, port: int) -> Sequence[Address]:
        return answers.pop(0)

    async with Outbound(resolve=rebinding) as outbound:
        url = service.url("/", "rebind.example")
        await use(request(outbound, url, allow_private=("rebind.example",)))
        assert (len(service.asked), len(answers)) == (1, 1)
        with pytest.raises(AddressRefused):
            await use(request(outbound, url, allow_private=()))
        assert (len(service.asked), len(answers)) == (1, 0)


async def test_a_proxy_in_the_environment_is_not_used(
    service: Service, outbound: Outbound, monkeypatch: pytest.MonkeyPatch
):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, service.url(""))
    with pytest.raises(AddressRefused):
        await use(request(outbound, "http://home.example/", allow_private=()))
    assert service.asked == []


# Redirects


async def test_a_redirect_to_a_private_address_is_refused(service: Service, outbound: Outbound):
    service.redirect("/", 302, "http://169.254.169.254/latest/meta-data/")
    with pytest.raises(AddressRefused, match=r"169\.254\.169\.254 is not on the public internet"):
        await use(request(outbound, service.url("/")))
    service.redirect("/", 302, service.url("/", "inside.example"))
    with pytest.raises(AddressRefused, match=r"inside\.example"):
        await use(request(outbound, service.url("/")))


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (303, "PUT", "GET"), (301, "PUT", "PUT"),
        (307, "POST", "POST"), (308, "PATCH", "PATCH"), (302, "GET", "GET"),
    ],
)  # fmt: skip
async def test_a_redirect_keeps_or_changes_the_method_as_browsers_do(
    service: Service, outbound: Outbound, status: int, method: str, then: str
):
    service.redirect("/old", status, "/new")
    tool = request(
        outbound, service.url("/old"), "a", method=method, body="json", headers={"X-Key": "${K}"}, secrets={"K": "kkkk"}
    )
    await use(tool, a="1")
    way, path, headers, body = service.asked[1]
    assert (way, path) == (then, "/new")
    assert headers["X-Key"] == "kkkk"
    assert (body == b"") is (then != method)
    assert ("Idempotency-Key" in headers) is (then != "GET")


async def test_secrets_and_keys_stay_with_the_origin_they_were_meant_for(service: Service, outbound: Outbound):
    service.redirect("/old", 307, service.url("/away", "home.example"))
    service.redirect("/away", 307, service.url("/back"))
    headers = {"X-Key": "${K}", "Authorization": "Basic bm8=", "Cookie": "a=b", "X-Api-Key": "written-out"}
    tool = request(
        outbound, service.url("/old"), "a", method="POST", headers=headers, secrets={"K": "kkkk"}, mode="async"
    )
    await use(tool, a="1")
    first, away, back = (set(each[2]) for each in service.asked)
    kept = {"X-Key", "Authorization", "Cookie", "X-Api-Key", "Idempotency-Key", "Denizen-Call-Id"}
    assert kept <= first
    assert not kept & (away | back)
    assert [(each[2]["Content-Type"], each[3]) for each in service.asked] == [("application/json", b'{"a": "1"}')] * 3


async def test_another_origin_gets_only_headers_that_are_not_of_the_definition(service: Service, outbound: Outbound):
    """Whatever they are called, and also where they replace one of ours."""
    service.redirect("/old", 307, service.url("/away", "home.example"))
    headers = {"User-Agent": "key-1", "Accept-Encoding": "gzip, key-2", "Content-Type": "x/key-3", "X-Plain": "key-4"}
    await use(request(outbound, service.url("/old"), method="POST", headers=headers))
    [(_, _, first, _), (_, _, away, _)] = service.asked
    assert "key-4" in str(first)
    assert "key-" not in str(away)
    assert away["Content-Type"] == "application/json"


async def test_redirects_end(service: Service, outbound: Outbound):
    service.redirect("/", 302, "/")
    with pytest.raises(ToolFailed, match="more than 5 times"):
        await use(request(outbound, service.url("/")))
    assert len(service.asked) == 6
    service.redirect("/", 302, "file:///etc/passwd")
    with pytest.raises(ToolFailed, match="not HTTP"):
        await use(request(outbound, service.url("/")))


async def test_a_redirect_cannot_bring_a_password_of_its_own(service: Service, outbound: Outbound):
    service.redirect("/", 302, f"http://user:pass@127.0.0.1:{service.port}/new")
    await use(request(outbound, service.url("/")))
    assert "Authorization" not in service.asked[1][2]


# Certificates


async def test_the_certificate_is_that_of_the_name(tmp_path: Path):
    """The connection goes to a checked address, and still only whoever has the name's certificate is believed."""
    certificate = self_signed("shop.example", tmp_path)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate)
    asked_for: list[str | None] = []
    serving.sni_callback = lambda _, name, __: asked_for.append(name)
    app = web.Application()

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    app.router.add_get("/", hello)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=serving).start()
    port = runner.addresses[0][1]
    try:
        async with Outbound(resolve=names, tls=ssl.create_default_context(cafile=str(certificate))) as outbound:
            allowed = ("shop.example", "other.example")
            assert await use(request(outbound, f"https://shop.example:{port}/", allow_private=allowed)) == "hello"
            with pytest.raises(ToolFailed, match="not sent"):
                await use(request(outbound, f"https://other.example:{port}/", allow_private=allowed))
    finally:
        await runner.cleanup()
    assert asked_for == ["shop.example", "other.example"]


def self_signed(name: str, folder: Path) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    pem = serialization.Encoding.PEM
    kept = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(kept + certificate.public_bytes(pem))
    return path


# Settings


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"url": "https://{city}.example/"}, "host of a url must be fixed"),
        ({"url": "https://shop.example/{town}"}, "which parameters.properties does not define"),
        ({"url": "https://user:pass@shop.example/"}, "may not hold a user or a password"),
        ({"url": "https://shop.example/?key=${KEY}"}, "a secret may not stand in a url"),
        ({"url": "https://shop.example:99999/"}, "no usable port"),
        ({"url": "https:///x"}, "names no host"),
        ({"url": "https://a.example\\@b.example/"}, "backslashes"),
        ({"headers": {"Host": "other"}}, "cannot be chosen"),
        ({"headers": {"X-A": "a\nb"}}, "cannot be sent"),
        ({"headers": {"X A": "a"}}, "cannot be sent"),
    ],
)
def test_settings_that_could_lead_astray_are_refused(settings: dict[str, Any], why: str):
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    sound: dict[str, Any] = {"url": "https://shop.example/", "parameters": parameters}
    with pytest.raises(ValidationError, match=why):
        HttpTool(name="ask", description="Ask.", **{**sound, **settings})


def test_the_tool_is_described_as_its_owner_wrote_it():
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    settings = HttpTool(
        name="weather", description="Weather of a city.", url="https://w.example/{city}", parameters=parameters,
        seconds=5, on_crash="retry", independent=True, visible=True,
    )  # fmt: skip
    tool = http_tool(settings, secret={}.get, outbound=Outbound())
    assert (tool.name, tool.definition.description) == ("weather", "Weather of a city.")
    assert tool.definition.parameters_json_schema == parameters
    assert (tool.seconds, tool.on_crash, tool.independent, tool.visible, tool.mode) == (5, "retry", True, True, "wait")
    with pytest.raises(InvalidInput, match='"city" is a required property'):
        tool.check({})
