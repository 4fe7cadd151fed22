"""Open WebUI, unmodified, with two users: the agent knows who speaks, and its life has each message once.

It needs gigabytes, so it is installed by hand: `OPEN_WEBUI=/path/of/its/environment make test-clients`.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.async_api import Browser, Page, expect
from pydantic_ai.messages import ModelMessage
from sqlalchemy import select

from denizen import forever, reply
from denizen.access import tokens
from denizen.models.scripted import Info, ScriptedModel, Turn
from denizen.storage.database import Tx, statement
from denizen.storage.schema import entities, messages
from tests.browser import open_browser
from tests.clients.conftest import environment
from tests.server.conftest import served
from tests.server.test_on_behalf_of import people
from tests.servers import free_port
from tests.world import as_text, open_world

PROGRAM = Path(os.environ.get("OPEN_WEBUI", ""), "bin", "open-webui")
START_SECONDS = 1200
SCREEN_SECONDS = 60
"""How long something may take to be on the screen: Open WebUI is large."""

expect.set_options(timeout=SCREEN_SECONDS * 1000)


@asynccontextmanager
async def open_webui(folder: Path, address: str, token: str) -> AsyncGenerator[httpx2.AsyncClient]:
    """A new Open WebUI whose models are our agents, and which says for whom each request is."""
    port = free_port()
    settings = {
        "OPENAI_API_BASE_URL": f"{address}/v1",
        "OPENAI_API_KEY": token,
        "ENABLE_FORWARD_USER_INFO_HEADERS": "true",
        "ENABLE_OLLAMA_API": "false",
        "DATA_DIR": str(folder),
        "WEBUI_SECRET_KEY": "a secret of this test",
        "RAG_EMBEDDING_ENGINE": "openai",
        "HF_HUB_OFFLINE": "1",
        "OFFLINE_MODE": "true",
        "DEFAULT_USER_ROLE": "user",
        "BYPASS_MODEL_ACCESS_CONTROL": "true",
        "HOME": str(folder),
    }
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(PROGRAM), "serve", "--host", "127.0.0.1", "--port", str(port),
            env=environment(**settings), cwd=folder, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            async with asyncio.timeout(START_SECONDS):
                while not await _answers(client):
                    assert process.returncode is None, (folder / "log").read_text()
                    await asyncio.sleep(1)
            yield client
    finally:
        process.kill()  # it waits for its own connections otherwise
        await process.wait()


async def _answers(client: httpx2.AsyncClient) -> bool:
    try:
        return (await client.get("/health")).is_success
    except httpx2.TransportError:
        return False


async def ask(client: httpx2.AsyncClient, path: str, token: str = "", **body: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = await client.post(path, json=body, headers=headers)
    assert answer.is_success, answer.text
    return answer.json()


async def chat(client: httpx2.AsyncClient, token: str, *messages: tuple[str, str]) -> str:
    said = [{"role": role, "content": text} for role, text in messages]
    told = await ask(client, "/api/chat/completions", token, model="ada", messages=said, stream=False)
    return told["choices"][0]["message"]["content"]


def words_of_people(tx: Tx) -> list[tuple[str, str]]:
    query = select(entities.c.handle, messages.c.text).join(messages, messages.c.author_id == entities.c.id)
    rows = tx.all(statement(query.where(entities.c.kind == "human")))
    return sorted((handle, text) for handle, text in rows)


@pytest.mark.timeout(2400)
async def test_two_users_titles_and_another_answer(tmp_path: Path) -> None:
    title = '{"title": "A secret"}'  # the agent's model is the utility model as well
    first_turns = reply("I keep it."), "Noor has a secret.", reply("No."), "Told Sam.", title
    another = reply("It is safe."), "Told Noor in other words."
    async with open_world("sqlite://") as world, served(world) as house, world.denizen.living():
        root = await world.person("Root")
        ada = await world.agent("Ada", *first_turns, *another)
        _, secret = await world.denizen.db.write(tokens.create, root.id, "Open WebUI", speaks_for_others=True)
        async with open_webui(tmp_path, house.address, secret) as client:
            noor = await ask(
                client, "/api/v1/auths/signup", name="Noor", email="noor@example.com", password="long enough 1"
            )
            sam = await ask(
                client, "/api/v1/auths/add", noor["token"],
                name="Sam", email="sam@example.com", password="long enough 2", role="user",
            )  # fmt: skip
            models = (await client.get("/api/models", headers={"Authorization": f"Bearer {noor['token']}"})).json()
            first = await chat(client, noor["token"], ("user", "My secret is 1234."))
            other = await chat(client, sam["token"], ("user", "Do you know a secret?"))
            talk = [{"role": "user", "content": "My secret is 1234."}, {"role": "assistant", "content": first}]
            titled = await ask(client, "/api/v1/tasks/title/completions", noor["token"], model="ada", messages=talk)
            again = await chat(client, noor["token"], ("user", "My secret is 1234."))
        life = "\n".join(await world.history(ada))
        said = await world.denizen.db.read(words_of_people)
        known = await people(world)
    assert "ada" in [each["id"] for each in models["data"]]
    assert (first, other, again) == ("I keep it.", "No.", "It is safe.")
    assert titled["choices"][0]["message"]["content"] == title
    assert said == [("noor", "My secret is 1234."), ("sam", "Do you know a secret?")]
    assert "Generate a concise" not in life
    assert {"noor", "sam"} <= set(known)


def with_side_tasks(*turns: Turn) -> ScriptedModel:
    """A model that answers tasks of Open WebUI whenever they come, and everything else with these turns in order."""
    left: Iterator[Turn] = iter(turns)

    def decide(messages: Sequence[ModelMessage], _: Info) -> Turn:
        text = "\n".join(map(as_text, messages))
        return '{"title": "A secret", "tags": ["Secrets"], "follow_ups": []}' if "### Task" in text else next(left)

    return forever(decide)


async def sign_in(browser: Browser, client: httpx2.AsyncClient, email: str, password: str) -> Page:
    page = await (await browser.new_context(base_url=str(client.base_url), locale="en-GB")).new_page()
    page.set_default_timeout(SCREEN_SECONDS * 1000)
    news = page.get_by_role("dialog").filter(has_text="What's New")

    async def close_news() -> None:
        await news.get_by_role("button", name="Close").click()

    await page.add_locator_handler(news, close_news)
    await page.goto("/auth")
    await page.locator("#email").fill(email)
    await page.locator("#password").fill(password)
    await page.get_by_role("button", name="Sign in").click()
    await page.locator("#chat-input").wait_for()
    return page


async def write(page: Page, text: str) -> None:
    await page.locator("#chat-input").click()
    await page.keyboard.type(text)
    await page.keyboard.press("Enter")


@pytest.mark.timeout(2400)
async def test_two_users_at_a_browser_and_another_answer(tmp_path: Path) -> None:
    turns = (
        reply("I keep it."),
        "Noor has a secret.",
        reply("No."),
        "Told Sam.",
        reply("It is safe."),
        "Told Noor again.",
    )
    async with open_world("sqlite://") as world, served(world) as house, world.denizen.living():
        root = await world.person("Root")
        ada = await world.agent("Ada", model=with_side_tasks(*turns))
        _, secret = await world.denizen.db.write(tokens.create, root.id, "Open WebUI", speaks_for_others=True)
        async with open_webui(tmp_path, house.address, secret) as client, open_browser() as browser:
            password = "long enough 1"
            first = await ask(client, "/api/v1/auths/signup", name="Noor", email="noor@example.com", password=password)
            another = {"name": "Sam", "email": "sam@example.com", "password": password, "role": "user"}
            await ask(client, "/api/v1/auths/add", first["token"], **another)
            noor = await sign_in(browser, client, "noor@example.com", password)
            await write(noor, "My secret is 1234.")
            await expect(noor.get_by_text("I keep it.")).to_be_visible()
            await expect(noor.get_by_role("heading", name="A secret")).to_be_visible()
            sam = await sign_in(browser, client, "sam@example.com", password)
            await write(sam, "Do you know a secret?")
            await expect(sam.get_by_text("No.", exact=True)).to_be_visible()
            await expect(sam.get_by_role("heading", name="A secret")).to_be_visible()
            await noor.get_by_role("button", name="Regenerate").click()
            await noor.get_by_role("button", name="Try Again").click()
            await expect(noor.get_by_text("It is safe.")).to_be_visible()
        life = "\n".join(await world.history(ada))
        said = await world.denizen.db.read(words_of_people)
    assert said == [("noor", "My secret is 1234."), ("sam", "Do you know a secret?")]
    # Each message is an event from the one who wrote it; the request for another answer quotes it.
    spoken = re.findall(r"(Noor|Sam) \(human\): \"(.*?)\"", life)
    assert spoken == [("Noor", "My secret is 1234."), ("Sam", "Do you know a secret?")]
    assert life.count("Noor asks you for another answer to what Noor wrote:") == 1
    assert "### Task" not in life
