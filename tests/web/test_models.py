"""Connecting a model in the browser: at the first start, and under Administration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from importlib import import_module
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from denizen.access import roles
from denizen.access.vault import new_key
from tests.models.loopback import Failure, Loopback, loopback
from tests.server.conftest import House
from tests.web.conftest import PHONE, SharedBrowser, Visit, served_to_browsers, visiting
from tests.world import UNHURRIED, open_world

NOWHERE = "http://127.0.0.1:1"
SECRET = "sk-of-nobody-0123456789"
SERVERS = ("LLAMACPP_BASE_URL", "LMSTUDIO_BASE_URL", "VLLM_BASE_URL", "OLLAMA_BASE_URL")


@pytest_asyncio.fixture(loop_scope="session")
async def house(ready_sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[House]:
    """A house that can keep keys, on a machine without model servers."""
    for variable in SERVERS:
        monkeypatch.setenv(variable, NOWHERE)
    async with (
        open_world(ready_sqlite_url, pace=UNHURRIED, secret_key=new_key()) as world,
        served_to_browsers(world) as house,
        world.denizen.living(),
    ):
        yield house


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncGenerator[Loopback]:
    async with loopback() as server:
        server.tool, server.arguments, server.text = "answer", '{"text": "ok"}', ""
        server.models = {"object": "list", "data": [{"id": "qwen2.5-coder", "meta": {"n_ctx": 8192}}]}
        yield server


async def test_at_the_first_start_an_owner_is_shown_how_to_connect_a_model(house: House, visit: Visit) -> None:
    noor, sam = await house.world.person("Noor"), await house.world.person("Sam")
    await house.world.denizen.db.write(roles.set_role, sam.id, "admin")
    await house.world.space("Kitchen", noor, sam)
    visitor = await visit(noor, first_start=True)
    page = await visitor.open()
    card = page.get_by_role("complementary", name="Connect a model")
    await expect(card).to_contain_text("demo model, which")
    await visitor.check_accessibility()
    await card.get_by_role("link", name="Connect a model").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Connect a model")).to_be_visible()
    await expect(card).to_have_count(0)
    await visitor.turn_to("/agents")
    await card.get_by_role("button", name="Not now").click()
    await expect(card).to_have_count(0)
    await page.reload()
    await expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
    await expect(card).to_have_count(0)

    other = await visit(sam, first_start=True)
    await other.open("/admin/models")
    await expect(other.page.get_by_text("Only operators, the owners of the first organization")).to_be_visible()
    await expect(other.page.get_by_role("heading", name="Connect a model")).to_have_count(0)
    await other.turn_to("/agents")
    await expect(other.page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
    await expect(other.page.get_by_role("complementary", name="Connect a model")).to_have_count(0)


async def test_a_model_found_on_the_machine_is_tested_and_used(
    house: House, visit: Visit, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    noor = await house.world.person("Noor")
    visitor = await visit(noor, first_start=True)
    page = await visitor.open("/admin/models")
    await expect(page.get_by_text("No model server found")).to_be_visible()
    monkeypatch.setenv("LLAMACPP_BASE_URL", server.url)
    await page.get_by_role("button", name="Look again").click()
    row = page.get_by_role("list", name="Models of llama.cpp").get_by_role("listitem")
    await expect(row).to_contain_text("llamacpp:qwen2.5-coder")
    await expect(row).to_contain_text("8,192 tokens of context")
    await row.get_by_role("button", name="Test").click()
    await expect(row.get_by_role("status")).to_contain_text("It called the tool that it was offered")
    await visitor.check_accessibility()
    await row.get_by_role("button", name="Use").click()
    await expect(page.get_by_role("region", name="Default model")).to_contain_text("chosen here")
    await expect(row).to_contain_text("default")
    assert house.world.denizen.default_model == "llamacpp:qwen2.5-coder"
    await visitor.turn_to("/agents")
    await expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
    await expect(page.get_by_role("complementary", name="Connect a model")).to_have_count(0)
    await visitor.turn_to("/admin/models")
    await page.get_by_role("button", name="Choose automatically").click()
    await expect(page.get_by_role("region", name="Default model")).to_contain_text("built in")


async def test_a_server_with_a_key_is_connected_and_the_key_is_not_shown_again(
    house: House, visit: Visit, server: Loopback
) -> None:
    noor = await house.world.person("Noor")
    visitor = await visit(noor)
    page = await visitor.open("/admin/models")
    form = page.get_by_role("region", name="Connect a model")
    await form.get_by_label("Provider").select_option(label="OpenAI-compatible server")
    await expect(form.get_by_role("button", name="Test")).to_be_disabled()
    await form.get_by_label("Base URL").fill(server.url)
    await form.get_by_label("API key").fill(SECRET)
    await form.get_by_label("Model").fill("qwen2.5-coder")

    server.failure = Failure(401, body={"error": {"message": "no such key"}})
    await form.get_by_role("button", name="Test").click()
    await expect(form.get_by_role("status")).to_contain_text("no such key. Check the API key.")
    server.failure = None
    await form.get_by_role("button", name="Test").click()
    await expect(form.get_by_role("status")).to_contain_text("compatible:qwen2.5-coder answered in")
    await expect(form.get_by_role("status")).to_contain_text("8,192 tokens of context")
    await form.get_by_role("button", name="Use as default").click()
    default = page.get_by_role("region", name="Default model")
    await expect(default).to_contain_text("compatible:qwen2.5-coder")
    await expect(form.get_by_label("API key")).to_have_value("")
    await expect(form).to_contain_text("COMPATIBLE_API_KEY is kept. Leave this empty to use it.")
    await page.reload()
    await expect(default).to_contain_text("compatible:qwen2.5-coder")
    assert SECRET not in await page.content()
    await visitor.turn_to("/admin/audit")
    await expect(page.get_by_text("changed the server's default model")).to_be_visible()


async def test_what_is_wrong_stands_beside_the_field(house: House, visit: Visit) -> None:
    visitor = await visit(await house.world.person("Noor"))
    page = await visitor.open("/admin/models")
    form = page.get_by_role("region", name="Connect a model")
    await form.get_by_label("Provider").select_option(label="OpenAI-compatible server")
    await form.get_by_label("Base URL").fill("http://169.254.169.254/v1")
    await form.get_by_label("Model").fill("m")
    await form.get_by_label("Model").press("Enter")
    await expect(form.get_by_label("Base URL")).to_have_attribute("aria-invalid", "true")
    await expect(form.get_by_role("alert")).to_contain_text("not to a model server")
    await form.get_by_label("Provider").select_option(label="llama.cpp")
    await expect(form.get_by_label("Base URL")).to_be_disabled()
    await expect(form).to_contain_text("Set by LLAMACPP_BASE_URL.")


async def test_a_configured_model_is_shown_as_such(
    browser: SharedBrowser, ready_sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in SERVERS:
        monkeypatch.setenv(variable, NOWHERE)
    async with (
        open_world(ready_sqlite_url, pace=UNHURRIED, secret_key=new_key(), default_model="demo") as world,
        served_to_browsers(world) as house,
        visiting(browser, house, await world.person("Noor"), first_start=True) as visitor,
    ):
        page = await visitor.open("/admin/models")
        await expect(page.get_by_role("region", name="Default model")).to_contain_text("set by the configuration")
        await expect(page.get_by_text("To choose a model here, remove DENIZEN_MODEL")).to_be_visible()
        form = page.get_by_role("region", name="Connect a model")
        await form.get_by_label("API key").fill(SECRET)
        await form.get_by_label("Model").fill("claude")
        await expect(form.get_by_role("button", name="Use as default")).to_be_disabled()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_fits_a_phone(
    house: House, visit: Visit, server: Loopback, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scheme: str
) -> None:
    monkeypatch.setenv("LLAMACPP_BASE_URL", server.url)
    server.models["data"][0]["id"] = "qwen2.5-coder-1.5b-instruct-with-a-long-name-q4_k_m.gguf"
    noor = await house.world.person("Noor")
    await house.world.space("Kitchen", noor)
    visitor = await visit(noor, first_start=True, size=PHONE, color_scheme=scheme)
    page = await visitor.open()
    await expect(page.get_by_role("complementary", name="Connect a model")).to_be_visible()
    await _fits(page)
    await visitor.check_accessibility()
    await page.screenshot(path=tmp_path / f"card-{scheme}.png")
    await visitor.turn_to("/admin/models")
    row = page.get_by_role("list", name="Models of llama.cpp").get_by_role("listitem")
    await row.get_by_role("button", name="Test").click()
    await expect(row.get_by_role("status")).to_contain_text("answered in")
    await _fits(page)
    await visitor.check_accessibility()
    await page.screenshot(path=tmp_path / f"models-{scheme}.png", full_page=True)


async def _fits(page: Page) -> None:
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await page.evaluate(wide) <= 0


async def test_a_provider_is_connected_through_a_gateway(house: House, visit: Visit, server: Loopback) -> None:
    """A company may allow no other way to it. The field is optional, and empty at first."""
    # On a busy machine this takes longer than a page is waited for.
    await asyncio.to_thread(import_module, "pydantic_ai.models.anthropic")
    noor = await house.world.person("Noor")
    visitor = await visit(noor)
    page = await visitor.open("/admin/models")
    form = page.get_by_role("region", name="Connect a model")
    for provider in ("OpenAI", "Anthropic"):
        await form.get_by_label("Provider").select_option(label=provider)
        await expect(form.get_by_label("Base URL (optional)")).to_have_value("")
        await expect(form).to_contain_text(f"Only for a proxy or gateway in front of {provider}.")
    await form.get_by_label("Provider").select_option(label="OpenRouter")
    await expect(form.get_by_label("Base URL")).to_have_count(0)

    await form.get_by_label("Provider").select_option(label="Anthropic")
    await form.get_by_label("Model").fill("claude-sonnet-5")
    await expect(form.get_by_role("button", name="Test")).to_be_disabled()
    await form.get_by_label("API key").fill(SECRET)
    await expect(form.get_by_role("button", name="Test")).to_be_enabled()
    await form.get_by_label("Base URL (optional)").fill(server.url)
    await visitor.check_accessibility()
    await form.get_by_role("button", name="Use as default").click()
    await expect(page.get_by_role("region", name="Default model")).to_contain_text("anthropic:claude-sonnet-5")
    await form.get_by_role("button", name="Test").click()
    await expect(form.get_by_role("status")).to_contain_text("anthropic:claude-sonnet-5 answered in")
    [asked] = [each for each in server.received if each.path == "/v1/messages"]
    assert asked.headers["Authorization"] == f"Bearer {SECRET}"
    await expect(form.get_by_label("Base URL (optional)")).to_have_value(server.url)
    await form.get_by_label("Base URL (optional)").fill("https://other.example")
    await expect(form).to_contain_text("Another base URL needs its own key.")
    await expect(form.get_by_role("button", name="Test")).to_be_disabled()
