"""Connecting a model over HTTP: what is on this machine, one test call, and the default model of the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from denizen.access import audit, roles
from denizen.access.audit import AuditFilter
from denizen.access.vault import new_key
from denizen.models.discovery import USUAL_MODELS
from denizen.spaces.directory import Entity
from tests.models.loopback import Failure, Loopback, loopback
from tests.server.conftest import House, served
from tests.world import UNHURRIED, World, open_world

NOWHERE = "http://127.0.0.1:1"
SECRET = "sk-of-nobody-0123456789"


@pytest.fixture
async def house(ready_sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[House]:
    for variable in ("LLAMACPP_BASE_URL", "LMSTUDIO_BASE_URL", "VLLM_BASE_URL", "OLLAMA_BASE_URL"):
        monkeypatch.setenv(variable, NOWHERE)
    async with (
        open_world(ready_sqlite_url, pace=UNHURRIED, secret_key=new_key()) as world,
        served(world) as house,
        world.denizen.living(),
    ):
        yield house


@pytest.fixture
async def server() -> AsyncGenerator[Loopback]:
    async with loopback() as server:
        server.tool, server.arguments, server.text = "answer", '{"text": "ok"}', ""
        server.models = {"object": "list", "data": [{"id": "qwen", "meta": {"n_ctx": 8192}}]}
        yield server


async def _listed(house: House, who: Entity, **query: Any) -> dict[str, Any]:
    answer = await house.call("GET", "/api/models", who, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_operators_see_the_model_servers_of_the_machine(
    house: House, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    noor = await house.world.person("Noor")
    monkeypatch.setenv("LLAMACPP_BASE_URL", server.url)
    listed = await _listed(house, noor, setup=True)
    assert (listed["default"], listed["default_source"], listed["may_choose"]) == ("demo", "demo", True)
    (found,) = listed["setup"]["servers"]
    assert (found["title"], found["address"]) == ("llama.cpp", f"{server.url}/v1")
    (model,) = found["models"]
    assert (model["name"], model["facts"]["context_tokens"]) == ("llamacpp:qwen", 8_192)
    providers = {each["provider"]: each for each in listed["setup"]["providers"]}
    assert {"anthropic", "openai", "ollama", "llamacpp", "lmstudio", "vllm", "compatible"} <= set(providers)
    assert (providers["llamacpp"]["address_set_by"], providers["openai"]["key"]) == (
        "LLAMACPP_BASE_URL",
        "OPENAI_API_KEY",
    )


async def test_a_test_says_what_was_learned_and_keeps_nothing(house: House, server: Loopback) -> None:
    noor = await house.world.person("Noor")
    wanted = {"name": "compatible:qwen", "address": server.url, "key": SECRET}
    told = (await house.call("POST", "/api/models/test", noor, json=wanted)).json()
    assert (told["ok"], told["called_tool"], told["problem"]) == (True, True, None)
    assert (told["facts"]["context_tokens"], told["facts"]["context_source"]) == (8_192, "/v1/models of its server")
    assert server.received[-1].headers["Authorization"] == f"Bearer {SECRET}"
    listed = await _listed(house, noor, setup=True)
    (compatible,) = [each for each in listed["setup"]["providers"] if each["provider"] == "compatible"]
    assert (listed["default"], compatible["address"], compatible["key_kept"]) == ("demo", None, None)


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (Failure(401, body={"error": {"message": "no such key"}}), "no such key. Check the API key."),
        (Failure(404, body={"error": {"message": "no model qwen"}}), "Check the name of the model and the address"),
        (Failure(500, body={"error": {"message": "oops"}}), "oops. Try again in a while."),
    ],
    ids=["wrong key", "unknown model", "broken server"],
)
async def test_a_failed_test_is_one_sentence_that_says_what_to_do(
    house: House, server: Loopback, failure: Failure, says: str
) -> None:
    noor = await house.world.person("Noor")
    server.failure = failure
    wanted = {"name": "compatible:qwen", "address": server.url, "key": SECRET}
    told = (await house.call("POST", "/api/models/test", noor, json=wanted)).json()
    assert (told["ok"], says in told["problem"]) == (False, True), told
    assert "{" not in told["problem"]
    assert SECRET not in str(told)


async def test_nothing_answers_at_the_address(house: House) -> None:
    noor = await house.world.person("Noor")
    told = (
        await house.call("POST", "/api/models/test", noor, json={"name": "compatible:m", "address": NOWHERE})
    ).json()
    assert told["ok"] is False
    assert "Check that the provider can be reached from this machine" in told["problem"]


async def test_the_chosen_model_is_used_at_once_and_after_a_restart(house: House, server: Loopback) -> None:
    world = house.world
    noor, ada = await world.person("Noor"), await world.denizen.agents.create("Ada")
    kitchen = await world.space("Kitchen", noor, ada)
    await house.say(noor, "Tea?", kitchen)
    await world.denizen.run_until_idle()
    said = len(await world.transcript(kitchen))
    assert server.received == [], "Ada thinks with the demo model, and stays awake"

    server.tool, server.text = None, "From the server."
    wanted = {"name": "compatible:qwen", "address": server.url, "key": SECRET}
    answer = await house.call("PUT", "/api/models/default", noor, json=wanted)
    assert (answer.status_code, answer.json()["default"]) == (200, "compatible:qwen"), answer.text
    assert answer.json()["default_source"] == "chosen"
    assert SECRET not in answer.text
    await house.say(noor, "And now?", kitchen)
    await world.denizen.run_until_idle()
    assert (await world.transcript(kitchen))[said:] == ["Noor: And now?", "Ada: From the server."]
    assert server.received[-1].headers["Authorization"] == f"Bearer {SECRET}"

    (key,) = (await house.call("GET", "/api/keys", noor)).json()["keys"]
    assert (key["name"], key["whose"]) == ("COMPATIBLE_API_KEY", "organization")
    entries = await world.denizen.db.read(audit.entries, noor.organization_id, noor.id, AuditFilter(), limit=10)
    done = {each.action: each.detail for each in entries}
    assert done["choose_model"] == {"model": "compatible:qwen", "compatible": f"{server.url}/v1"}
    assert "set_key" in done
    assert SECRET not in str(entries)


async def test_the_choice_survives_a_restart_and_can_be_taken_back(
    ready_sqlite_url: str, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = new_key()
    async with open_world(ready_sqlite_url, secret_key=key) as world:
        noor = await world.person("Noor")
        await world.denizen.models.choose("compatible:qwen", address=server.url, key=SECRET)
        await world.restart()
        assert (world.denizen.default_model, world.denizen.model_catalog.addresses) == (
            "compatible:qwen",
            {"compatible": f"{server.url}/v1"},
        )
        await _answers(world, server, noor)
        await world.denizen.models.choose(None)
        assert (world.denizen.default_model, world.denizen.server_models.source) == ("demo", "demo")


async def test_another_process_on_the_same_database_uses_the_choice_too(
    ready_sqlite_url: str, server: Loopback
) -> None:
    key = new_key()
    async with (
        open_world(ready_sqlite_url, secret_key=key) as here,
        open_world(ready_sqlite_url, secret_key=key) as there,
    ):
        noor = await here.person("Noor")
        assert there.denizen.default_model == "demo"
        await here.denizen.models.choose("compatible:qwen", address=server.url, key=SECRET)
        await _answers(there, server, noor)
        assert there.denizen.default_model == "compatible:qwen"


async def _answers(world: World, server: Loopback, noor: Entity) -> None:
    server.tool, server.text = None, "Still here."
    ada = await world.denizen.agents.create("Ada")
    kitchen = await world.space("Kitchen", noor, ada)
    await world.say(noor, "Tea?", kitchen)
    await world.denizen.run_until_idle()
    assert await world.transcript(kitchen) == ["Noor: Tea?", "Ada: Still here."]


async def test_a_panel_uses_the_chosen_model(house: House, server: Loopback) -> None:
    noor = await house.world.person("Noor")
    server.tool, server.text = None, "I advise tea."
    await house.call("PUT", "/api/models/default", noor, json={"name": "compatible:q", "address": server.url})
    answer = await house.call(
        "POST",
        "/api/panels",
        noor,
        json={"name": "Advice", "advisors": [{"name": "Sol"}]},
    )
    assert answer.status_code == 201, answer.text
    asked = await house.call("POST", f"/api/spaces/{answer.json()['id']}/messages", noor, json={"text": "Tea?"})
    assert asked.status_code < 300, asked.text
    await house.world.denizen.run_until_idle()
    assert server.received[-1].body["model"] == "q"


async def test_a_model_of_the_configuration_wins(ready_sqlite_url: str) -> None:
    async with (
        open_world(ready_sqlite_url, secret_key=new_key(), default_model="demo") as world,
        served(world) as house,
    ):
        noor = await world.person("Noor")
        answer = await house.call("PUT", "/api/models/default", noor, json={"name": "ollama:qwen3"})
        assert answer.status_code == 422
        assert "The configuration sets the model demo. Remove DENIZEN_MODEL" in answer.json()["detail"]
        listed = await _listed(house, noor)
        assert (listed["default"], listed["default_source"]) == ("demo", "configured")


async def test_a_kept_key_is_not_sent_to_another_address(house: House, server: Loopback) -> None:
    noor = await house.world.person("Noor")
    wanted = {"name": "compatible:qwen", "address": server.url, "key": SECRET}
    assert (await house.call("PUT", "/api/models/default", noor, json=wanted)).status_code == 200
    async with loopback() as other:
        other.tool = "answer"
        moved = {"name": "compatible:qwen", "address": other.url}
        assert (await house.call("POST", "/api/models/test", noor, json=moved)).json()["ok"] is True
        assert SECRET not in str(other.received)
        answer = await house.call("PUT", "/api/models/default", noor, json=moved)
        assert (answer.status_code, answer.json()["detail"]) == (
            422,
            "key: The address is another one: enter the key for it.",
        )
    assert (await house.call("POST", "/api/models/test", noor, json={"name": "compatible:qwen"})).json()["ok"] is True
    assert server.received[-1].headers["Authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    "address",
    [
        "ftp://127.0.0.1",
        "not an address",
        "http://",
        "http://u:p@127.0.0.1/v1",
        "http://127.0.0.1/v1?x=1",
        "http://127.0.0.1:99999",
        "http://169.254.169.254/latest",
        "http://[::ffff:169.254.169.254]/v1",
        "http://metadata.google.internal/v1",
    ],
)
async def test_an_address_at_which_no_model_can_be_is_refused(house: House, address: str) -> None:
    noor = await house.world.person("Noor")
    for method, path in (("POST", "/api/models/test"), ("PUT", "/api/models/default")):
        answer = await house.call(method, path, noor, json={"name": "compatible:m", "address": address})
        assert (answer.status_code, answer.json()["detail"].startswith("address: ")) == (422, True), answer.text


async def test_only_operators_connect_models(house: House, server: Loopback) -> None:
    """Neither members and admins of the first organization, nor owners of another one."""
    world = house.world
    await world.person("Noor")
    sam = await world.person("Sam")
    await world.denizen.db.write(roles.set_role, sam.id, "admin")
    other = await world.denizen.organizations.create("Elsewhere")
    zoe = await world.denizen.people.create("Zoe", organization=other)
    wanted = {"name": "compatible:m", "address": server.url}
    for who in (sam, zoe):
        assert (await _listed(house, who))["may_choose"] is False
        for method, path in (
            ("GET", "/api/models?setup=true"),
            ("POST", "/api/models/test"),
            ("PUT", "/api/models/default"),
            ("DELETE", "/api/models/default"),
        ):
            body = {} if method in ("GET", "DELETE") else {"json": wanted}
            answer = await house.call(method, path, who, **body)
            assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed"), (who.name, method, path)
    assert server.received == []


async def test_the_name_of_a_model_without_its_provider_is_refused(house: House) -> None:
    noor = await house.world.person("Noor")
    answer = await house.call("PUT", "/api/models/default", noor, json={"name": "gpt-5"})
    assert (answer.status_code, "Did you mean openai:gpt-5?" in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("openai:gpt-5", "/v1/responses"),
        ("openai-chat:gpt-5", "/v1/chat/completions"),
        ("anthropic:claude-sonnet-5", "/v1/messages"),
    ],
)
async def test_a_provider_is_reached_through_a_gateway(
    house: House, server: Loopback, monkeypatch: pytest.MonkeyPatch, name: str, path: str
) -> None:
    """With the key for the gateway. The one in the environment of the server is for the provider itself."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-environment")
    noor = await house.world.person("Noor")
    provider = name.partition(":")[0].removesuffix("-chat")
    wanted = {"name": f"{provider}:{name.partition(':')[2]}", "address": server.url}
    for method, url in (("POST", "/api/models/test"), ("PUT", "/api/models/default")):
        answer = (await house.call(method, url, noor, json=wanted)).json()
        assert "enter the key" in (answer.get("problem") or answer["detail"]).lower()
    assert not server.received

    answer = await house.call("PUT", "/api/models/default", noor, json=wanted | {"key": SECRET})
    assert answer.status_code == 200, answer.text
    tested = (await house.call("POST", "/api/models/test", noor, json={"name": name})).json()
    assert (tested["ok"], tested["called_tool"]) == (True, True), tested
    asked = next(each for each in server.received if each.path == path)
    assert asked.headers["Authorization"] == f"Bearer {SECRET}"
    listed = {each["provider"]: each for each in (await _listed(house, noor, setup=True))["setup"]["providers"]}
    assert listed[provider]["address"].startswith(server.url)
    assert (listed[provider]["takes_address"], listed[provider]["needs_address"]) == (True, False)
    assert (listed["openrouter"]["takes_address"], listed["compatible"]["needs_address"]) == (False, True)


async def test_a_gateway_can_be_left_out_again(house: House, server: Loopback) -> None:
    noor = await house.world.person("Noor")
    wanted = {"name": "openai:gpt-5", "address": server.url, "key": SECRET}
    assert (await house.call("PUT", "/api/models/default", noor, json=wanted)).status_code == 200
    again = {"name": "openai:gpt-5", "address": ""}
    answer = await house.call("PUT", "/api/models/default", noor, json=again)
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "key: The address is another one: enter the key for it.",
    )
    assert (await house.call("PUT", "/api/models/default", noor, json=again | {"key": SECRET})).status_code == 200
    listed = {each["provider"]: each for each in (await _listed(house, noor, setup=True))["setup"]["providers"]}
    assert listed["openai"]["address"] is None


async def test_the_environment_sets_the_address_of_a_provider(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gateway.example")
    noor = await house.world.person("Noor")
    wanted = {"name": "anthropic:claude-sonnet-5", "address": "https://other.example", "key": SECRET}
    answer = await house.call("PUT", "/api/models/default", noor, json=wanted)
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "address: ANTHROPIC_BASE_URL sets the address of Anthropic. Change it there.",
    )


async def test_the_models_most_people_want_come_first(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    noor = await house.world.person("Noor")
    listed = await _listed(house, noor)
    names = [each["name"] for each in listed["models"] if each["name"].startswith("openai:")]
    assert names[0] == USUAL_MODELS["openai"][0]
    assert len(names) > 5
    assert names[2:] == sorted(names[2:])


OFFERED = ["gpt-unknown-9", "text-embedding-3", "gpt-5-mini", "whisper-1", "gpt-5", "a b", "tts-1"]


async def test_the_list_is_what_the_provider_offers_the_useful_ones_first(
    house: House, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    usual = [each.removeprefix("openai:") for each in USUAL_MODELS["openai"]][:2]
    server.models = {"object": "list", "data": [{"id": each} for each in (*OFFERED, *reversed(usual))]}
    noor = await house.world.person("Noor")
    others = sorted({"gpt-unknown-9", "gpt-5-mini", "gpt-5"} - set(usual))
    expected = [f"openai:{each}" for each in (*usual, *others)]

    async def of_openai() -> list[str]:
        listed = (await _listed(house, noor))["models"]
        return [each["name"] for each in listed if each["name"].startswith("openai:")]

    answers = [await of_openai() for _ in range(2)]
    answers += await asyncio.gather(of_openai(), of_openai())
    assert answers == [expected] * 4
    assert len(server.listed_for) == 1, "it is remembered"
    # After ten minutes it is asked again; a provider that does not answer has the models that are known of it.
    house.world.clock.advance(601)
    server.models = {"object": "list", "data": "?"}
    fallback = await of_openai()
    assert {*expected} != {*fallback}
    assert set(USUAL_MODELS["openai"]) <= {*fallback}
    assert len(server.listed_for) == 2


async def test_a_key_of_the_organization_is_asked_with_and_never_the_servers(
    house: House, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    server.models = {"object": "list", "data": [{"id": "gpt-ours"}]}
    noor = await house.world.person("Noor")
    kept = await house.call("PUT", "/api/keys/OPENAI_API_KEY", noor, json={"value": SECRET})
    assert kept.status_code in (200, 201, 204), kept.text
    listed = (await _listed(house, noor))["models"]
    assert {"name": "openai:gpt-ours", "paid_by": "organization"} in listed
    assert server.listed_for[-1]["authorization"] == f"Bearer {SECRET}"
