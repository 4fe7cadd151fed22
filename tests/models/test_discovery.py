"""Which model is chosen when nobody has said. Ollama is a real HTTP server on loopback that answers as Ollama does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, get_args

import pytest
from aiohttp import web
from pydantic_ai.models import KnownModelName

from denizen import Runtime, scripted
from denizen.api.wiring import Wiring
from denizen.errors import InvalidInput
from denizen.models.catalog import Models
from denizen.models.discovery import ANTHROPIC_MODEL, OPENAI_MODEL, USUAL_MODELS, ModelChoice, choose_model

NOWHERE = "http://127.0.0.1:1"
ALONE: dict[str, str] = dict.fromkeys(("LLAMACPP_BASE_URL", "LMSTUDIO_BASE_URL", "VLLM_BASE_URL"), NOWHERE)
"""No server but Ollama is looked for on this machine."""
PATIENT = 60.0
"""For a server that is there: a busy machine may take its time."""


@asynccontextmanager
async def serving(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncGenerator[str]:
    """Every request is answered by `handler`; gives the server's address."""
    runner = web.AppRunner(_app(handler), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _app(handler: Any) -> web.Application:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    return app


def ollama(**models: dict[str, Any]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """An Ollama with these models installed; `capabilities` is what `/api/show` tells of each, if anything."""
    named = {name.replace("__", ":"): about for name, about in models.items()}

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/api/tags":
            tags = [{"name": name, "model": name, **about.get("tag", {})} for name, about in named.items()]
            return web.json_response({"models": tags})
        if request.path == "/api/show":
            about = named[(await request.json())["model"]]
            shown = {"capabilities": about["capabilities"]} if "capabilities" in about else {}
            return web.json_response({"modelfile": "…", **shown})
        return web.json_response({"error": "not found"}, status=404)

    return answer


def sized(parameters: str, *capabilities: str) -> dict[str, Any]:
    return {"tag": {"size": 1, "details": {"parameter_size": parameters}}, "capabilities": list(capabilities)}


async def test_what_is_configured_wins():
    environ = {"ANTHROPIC_API_KEY": "k"}
    assert await choose_model("openai:gpt-5", environ) == ModelChoice(
        "openai:gpt-5", "The model openai:gpt-5 is configured."
    )


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, ANTHROPIC_MODEL),
        ({"ANTHROPIC_API_KEY": " ", "OPENAI_API_KEY": "k"}, OPENAI_MODEL),
    ],
)
async def test_a_key_in_the_environment_chooses_its_provider(environ: dict[str, str], name: str):
    choice = await choose_model(None, {**ALONE, **environ}, ollama_url=NOWHERE, patience_seconds=PATIENT)
    assert choice.name == name
    assert name in choice.reason
    assert "_API_KEY is set" in choice.reason


@pytest.mark.parametrize("name", [ANTHROPIC_MODEL, OPENAI_MODEL])
def test_the_defaults_are_models_that_exist(name: str):
    known = get_args(getattr(KnownModelName, "__value__", KnownModelName))
    assert name in known


async def test_without_anything_it_is_the_demo_model():
    choice = await choose_model(None, ALONE, ollama_url=NOWHERE, patience_seconds=PATIENT)
    assert choice == ModelChoice(
        "demo",
        "No model is configured and no server of models answers on this machine: "
        "agents think with the built-in demo model.",
    )
    assert Models().resolve(choice.name).model_name == "demo"


async def test_the_largest_known_model_that_can_use_tools_is_chosen():
    installed = ollama(
        gemma3__27b=sized("27.4B", "completion", "vision"),
        obscure__70b=sized("70B", "completion", "tools"),
        qwen3__8b=sized("8.2B", "completion", "tools"),
        qwen3__14b=sized("14.8B", "completion", "tools"),
        mistral__latest=sized("7.2B", "completion"),
        **{"gpt-oss__120b-cloud": sized("116.8B", "completion", "tools")},
    )
    async with serving(installed) as url:
        choice = await choose_model(None, ALONE, ollama_url=url, patience_seconds=PATIENT)
    assert choice == ModelChoice(
        "ollama:qwen3:14b", "An Ollama runs on this machine, so agents think with its qwen3:14b.", url
    )


async def test_an_old_ollama_that_does_not_tell_is_believed_for_models_known_to_use_tools():
    async with serving(ollama(phi__latest={}, **{"llama3.1__8b": {"tag": {"size": 5}}})) as url:
        assert (await choose_model(None, ALONE, ollama_url=url, patience_seconds=PATIENT)).name == "ollama:llama3.1:8b"


@pytest.mark.parametrize(
    ("installed", "says"),
    [({}, "it has no model installed"), ({"tiny": sized("1B", "completion")}, "none of its models can use tools")],
)
async def test_an_ollama_without_a_fitting_model_leads_to_the_demo_model(installed: dict[str, Any], says: str):
    async with serving(ollama(**installed)) as url:
        choice = await choose_model(None, ALONE, ollama_url=url, patience_seconds=PATIENT)
    assert choice.name == "demo"
    assert says in choice.reason


async def test_an_ollama_that_hangs_is_not_waited_for():
    asked = asyncio.Event()

    async def hang(_request: web.Request) -> web.StreamResponse:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async with serving(hang) as url:
        patience = 0.1
        while not asked.is_set():  # a loaded machine may give up before it has asked
            patience *= 2
            choice = await choose_model(None, ALONE, ollama_url=url, patience_seconds=patience)
            assert choice.name == "demo"


@pytest.mark.parametrize(("body", "status"), [("<html>", 200), ('{"models": [{"size": "x"}]}', 200), ("{}", 500)])
async def test_something_else_on_that_port_is_no_ollama(body: str, status: int):
    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(text=body, status=status)

    async with serving(answer) as url:
        assert (await choose_model(None, ALONE, ollama_url=url, patience_seconds=PATIENT)).name == "demo"


async def test_the_environment_says_where_ollama_is():
    async with serving(ollama(qwen3__8b=sized("8B", "tools"))) as url:
        port = url.rpartition(":")[2]
        for environ in (
            {"OLLAMA_BASE_URL": f"{url}/v1/"},
            {"OLLAMA_HOST": f"127.0.0.1:{port}"},
            {"OLLAMA_HOST": f"0.0.0.0:{port}"},
            {"OLLAMA_HOST": url},
        ):
            choice = await choose_model(None, {**ALONE, **environ}, ollama_url=NOWHERE, patience_seconds=PATIENT)
            assert (choice.name, choice.ollama_url) == ("ollama:qwen3:8b", url)


@pytest.mark.parametrize("host", ["10.1.2.3:11434", "https://ollama.example", "http://[", "a:b"])
async def test_another_machine_is_not_asked(host: str):
    choice = await choose_model(None, {**ALONE, "OLLAMA_HOST": host}, ollama_url=NOWHERE, patience_seconds=PATIENT)
    assert choice.name == "demo"


@pytest.mark.parametrize(
    ("url", "expected"), [(None, "http://127.0.0.1:11434/v1/"), ("http://127.0.0.1:99", "http://127.0.0.1:99/v1/")]
)
def test_a_model_of_ollama_is_found_where_it_was_discovered(
    url: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OLLAMA_BASE_URL", raising=False)
    models = Models()
    models.ollama_url = url
    model = models.resolve("ollama:qwen3:8b")
    assert model.model_name == "qwen3:8b"
    assert model.provider is not None
    assert model.provider.base_url == expected


async def listing(_request: web.Request) -> web.StreamResponse:
    return web.json_response({"object": "list", "data": [{"id": "text-embedding-x"}, {"id": "qwen2.5-coder"}]})


@pytest.mark.parametrize(
    ("variable", "name", "title"),
    [
        ("LLAMACPP_BASE_URL", "llamacpp:qwen2.5-coder", "llama.cpp"),
        ("LMSTUDIO_BASE_URL", "lmstudio:qwen2.5-coder", "LM Studio"),
        ("VLLM_BASE_URL", "vllm:qwen2.5-coder", "vLLM"),
    ],
)
async def test_a_server_that_speaks_openais_api_on_this_machine_is_found(
    variable: str, name: str, title: str, monkeypatch: pytest.MonkeyPatch
):
    async with serving(listing) as url:
        environ = {**ALONE, variable: url}
        choice = await choose_model(None, environ, ollama_url=NOWHERE, patience_seconds=PATIENT)
        assert (choice.name, choice.reason) == (
            name,
            f"{title} runs on this machine, so agents think with its qwen2.5-coder.",
        )
        monkeypatch.setenv(variable, url)
        model = Models().resolve(choice.name)
        assert (model.model_name, model.base_url) == ("qwen2.5-coder", f"{url}/v1/")


async def test_openai_base_url_on_this_machine_is_asked_for_its_models():
    """Its first model was never the one that OpenAI has."""
    async with serving(listing) as url:
        environ = {**ALONE, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{url}/v1"}
        choice = await choose_model(None, environ, ollama_url=NOWHERE, patience_seconds=PATIENT)
    assert choice.name == "openai-chat:qwen2.5-coder"
    gone = {**ALONE, "OPENAI_BASE_URL": f"{NOWHERE}/v1"}
    choice = await choose_model(None, gone, ollama_url=NOWHERE, patience_seconds=PATIENT)
    assert choice.name == "demo"
    assert "set DENIZEN_MODEL=openai-chat:NAME" in choice.reason


@pytest.mark.parametrize("name", [each for pair in USUAL_MODELS.values() for each in pair])
def test_the_usual_models_exist(name: str):
    assert name in get_args(getattr(KnownModelName, "__value__", KnownModelName))


async def test_a_runtime_without_a_model_finds_one_as_the_command_does(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Wiring, "finds_models", True)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "DENIZEN_MODEL", "OLLAMA_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    async with serving(ollama(qwen3__8b=sized("8B", "tools"))) as url:
        monkeypatch.setenv("OLLAMA_HOST", url)
        async with Runtime() as denizen:
            assert (denizen.default_model, denizen.model_catalog.ollama_url) == ("ollama:qwen3:8b", url)
        async with Runtime(default_model="demo") as denizen:
            assert denizen.default_model == "demo"
        monkeypatch.setenv("DENIZEN_MODEL", "openai:gpt-5")
        async with Runtime() as denizen:
            assert denizen.default_model == "openai:gpt-5"


async def test_a_model_without_its_provider_is_refused():
    with pytest.raises(InvalidInput, match=r"no model 'gpt-5'.*Did you mean openai:gpt-5\?"):
        async with Runtime(default_model="gpt-5"):
            pass
    async with Runtime(models={"mine": scripted()}) as denizen:
        with pytest.raises(InvalidInput, match="Did you mean openai:gpt-5"):
            await denizen.agents.create("Ada", model="gpt-5")
        ada = await denizen.agents.create("Ada", model="mine")
        with pytest.raises(InvalidInput, match="Name it as provider:name"):
            await denizen.agents.edit(ada, model="llama-9-huge")
        assert (await denizen.agents.edit(ada, model="openai:gpt-5")).definition.model == "openai:gpt-5"
