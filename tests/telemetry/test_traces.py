"""Traces: what a real collector receives of conversations, skips, failures and resumed cycles."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from denizen import call, reply, skip, tool
from denizen.cli.home import telemetry_of
from denizen.errors import InvalidInput, ModelOverloaded, ModelRejected
from denizen.settings.loading import load
from denizen.telemetry import traces
from denizen.telemetry.telemetry import Telemetry
from denizen.telemetry.traces import Tracer, passed_on
from denizen.tools.settings import ClientTool
from tests.telemetry.collector import Collector, attributes, collecting, watched
from tests.world import UNHURRIED, JumpingClock, World, open_world


@pytest.fixture
async def collector() -> AsyncGenerator[Collector]:
    async with collecting() as collector:
        yield collector


@pytest.fixture
async def telemetry(collector: Collector) -> AsyncGenerator[Telemetry]:
    telemetry = watched(collector)
    yield telemetry
    await telemetry.aclose()


@pytest.fixture
async def traced(ready_url: str, telemetry: Telemetry) -> AsyncGenerator[World]:
    """A world whose cycles are traced: once on SQLite, once on PostgreSQL."""
    async with open_world(ready_url, clock=JumpingClock(), pace=UNHURRIED, telemetry=telemetry) as world:
        yield world


def children(spans: list[Span], parent: Span) -> list[str]:
    return [each.name for each in spans if each.parent_span_id == parent.span_id]


async def test_a_conversation_with_a_tool(traced: World, telemetry: Telemetry, collector: Collector) -> None:
    """A span for the cycle, below it one for each step and each tool, in the words of the conventions."""

    @tool
    async def weather(city: str) -> str:
        """The weather."""
        return f"Sunny in {city}."

    ada = await traced.agent("Ada", call("weather", city="Oslo"), reply("Sunny."), "Told Noor.", tools=[weather])
    noor = await traced.person("Noor")
    hall = await traced.space("Hall", noor, ada)
    await traced.say(noor, "How is the weather in Oslo?", hall)
    await traced.run()
    await telemetry.aclose()

    [cycle] = collector.named("invoke_agent")
    spans = collector.spans
    assert (cycle.name, cycle.parent_span_id) == ("invoke_agent ada", b"")
    assert children(spans, cycle) == [
        "chat scripted", "execute_tool weather", "chat scripted", "execute_tool send_message", "chat scripted",
    ]  # fmt: skip
    assert {each.trace_id for each in spans} == {cycle.trace_id}
    [record] = await traced.cycles(ada)
    told = attributes(cycle)
    assert told.pop("denizen.window.tokens") > 0
    assert told.pop("denizen.instance.id") == traced.denizen.instance
    assert told == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.agent.id": ada.id,
        "gen_ai.agent.name": "ada",
        "gen_ai.conversation.id": hall.id,
        "gen_ai.usage.input_tokens": record.input_tokens,
        "gen_ai.usage.output_tokens": record.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": 0,
        "gen_ai.usage.cache_creation.input_tokens": 0,
        "denizen.organization.id": ada.entity.organization_id,
        "denizen.cost.dollars": 0.0,
        "denizen.cycle.id": record.id,
        "denizen.cycle.number": 1,
        "denizen.cycle.outcome": "acted",
        "denizen.cycle.stop_reason": "answered",
        "denizen.cycle.steps": 3,
        "denizen.cycle.resumed": False,
        "denizen.cycle.attempts": 0,
        "denizen.inbox.events": 1,
    }
    chats = [attributes(each) for each in collector.named("chat")]
    assert [each["denizen.step"] for each in chats] == [0, 1, 2]
    assert sum(each["gen_ai.usage.output_tokens"] for each in chats) == record.output_tokens
    for chat in chats:
        assert chat["gen_ai.response.time_to_first_chunk"] >= 0
        assert chat["denizen.tokens_per_second"] > 0
        assert (chat["gen_ai.operation.name"], chat["gen_ai.response.model"]) == ("chat", "scripted")
        assert (chat["denizen.model"], chat["gen_ai.conversation.id"]) == ("python:ada", hall.id)
    assert {each.kind for each in collector.named("chat")} == {Span.SPAN_KIND_CLIENT}
    outside, own = (attributes(each) for each in collector.named("execute_tool"))
    assert (outside["gen_ai.tool.name"], outside["gen_ai.tool.type"], outside["denizen.tool.kind"]) == (
        "weather", "extension", "outside",
    )  # fmt: skip
    assert (own["gen_ai.tool.name"], own["denizen.tool.kind"], own["denizen.tool.outcome"]) == (
        "send_message", "own", "done",
    )  # fmt: skip
    for span in spans:
        assert span.status.code == Status.STATUS_CODE_UNSET
        assert span.end_time_unix_nano >= span.start_time_unix_nano


async def test_who_sends(traced: World, telemetry: Telemetry, collector: Collector) -> None:
    """The resource says which program it is."""
    ada = await traced.agent("Ada", skip("no"))
    noor = await traced.person("Noor")
    await traced.say(noor, "Hi", await traced.space("Hall", noor, ada))
    await traced.run()
    await telemetry.aclose()

    [resource] = [each.resource for request in collector.requests for each in request.resource_spans]
    told = {each.key: each.value.string_value for each in resource.attributes}
    assert (told["service.name"], told["service.version"]) == ("denizen", "1.2.3")
    assert told["service.instance.id"]


async def test_a_skip(traced: World, telemetry: Telemetry, collector: Collector) -> None:
    """A skipped cycle leaves no trace in the agent's life; here it does, without its reason."""
    ada = await traced.agent("Ada", skip("I would rather not say why"))
    noor, bert = await traced.person("Noor"), await traced.person("Bert")
    await traced.say(noor, "Hi", await traced.space("Hall", noor, bert, ada))
    await traced.run()
    await telemetry.aclose()

    [cycle] = collector.named("invoke_agent")
    told = attributes(cycle)
    assert (told["denizen.cycle.outcome"], told["denizen.cycle.steps"]) == ("skipped", 1)
    assert told["gen_ai.usage.output_tokens"] > 0
    assert "denizen.cycle.number" not in told
    assert children(collector.spans, cycle) == ["chat scripted"]


async def test_a_failure(traced: World, telemetry: Telemetry, collector: Collector) -> None:
    """Each request that failed has its span; the kind of the error is told, its words are not."""
    ada = await traced.agent("Ada", ModelOverloaded("busy"), ModelRejected("your words: swordfish"))
    noor = await traced.person("Noor")
    await traced.say(noor, "Hi", await traced.space("Hall", noor, ada))
    await traced.run()
    await telemetry.aclose()

    [cycle] = collector.named("invoke_agent")
    told = attributes(cycle)
    assert (told["denizen.cycle.outcome"], told["error.type"]) == ("undone", "model_rejected")
    assert cycle.status.code == Status.STATUS_CODE_ERROR
    chats = collector.named("chat")
    assert [attributes(each)["error.type"] for each in chats] == ["model_overloaded", "model_rejected"]
    assert [attributes(each)["denizen.attempt"] for each in chats] == [1, 2]
    assert not any(b"swordfish" in body for body in collector.bodies)
    assert all(not each.status.message and not each.events for each in collector.spans)


async def test_a_resumed_cycle(traced: World, telemetry: Telemetry, collector: Collector) -> None:
    """Each part of a cycle's life has a span; what was paid before the break is not told twice."""
    ada = await traced.agent("Ada", reply("One moment."), ModelRejected("no"), "Told Noor.")
    noor = await traced.person("Noor")
    hall = await traced.space("Hall", noor, ada)
    await traced.say(noor, "Hi", hall)
    await traced.run()
    await traced.restart()
    await traced.run_after(60)
    await telemetry.aclose()

    first, second = map(attributes, collector.named("invoke_agent"))
    [record] = await traced.cycles(ada)
    assert {first["denizen.cycle.id"], second["denizen.cycle.id"]} == {record.id}
    assert (first["denizen.cycle.outcome"], first["denizen.cycle.resumed"]) == ("postponed", False)
    assert (second["denizen.cycle.outcome"], second["denizen.cycle.resumed"]) == ("acted", True)
    assert first["denizen.instance.id"] != second["denizen.instance.id"]
    assert first["gen_ai.usage.output_tokens"] + second["gen_ai.usage.output_tokens"] == record.output_tokens
    assert [attributes(each)["denizen.step"] for each in collector.named("chat")] == [0, 1, 1]
    assert len(collector.named("execute_tool")) == 1


async def test_tools_that_fail_are_refused_or_wait(traced: World, telemetry: Telemetry, collector: Collector) -> None:
    """A call that was not carried out, one whose tool does not exist, and one that people are asked."""

    @tool
    async def breaks() -> str:
        """Never works."""
        raise ValueError("swordfish")

    choose = ClientTool(name="choose", description="Let them choose.", parameters={"type": "object"})
    turns = [
        [call("breaks"), call("invented_swordfish"), call("enter_space", space_id="nowhere")],
        call("choose"),
        "Done.",
    ]
    ada = await traced.agent("Ada", *turns, tools=[breaks, choose], cycle={"silent_reply": "ignore"})
    noor = await traced.person("Noor")
    await traced.say(noor, "Hi", await traced.space("Hall", noor, ada))
    await traced.run()
    [waiting] = await traced.denizen.calls.waiting(noor)
    await traced.denizen.calls.answer(waiting, "the left one", by=noor)
    await traced.run()
    await telemetry.aclose()

    told = [attributes(each) for each in collector.named("execute_tool")]
    assert [(each["gen_ai.tool.name"], each["denizen.tool.kind"], each["denizen.tool.outcome"]) for each in told] == [
        ("breaks", "outside", "failed"),
        ("unknown", "unknown", "refused"),
        ("enter_space", "own", "refused"),
        ("choose", "asked", "asked"),
        ("choose", "asked", "answered"),
    ]
    assert told[0]["error.type"] == "ValueError"
    outcomes = [attributes(each)["denizen.cycle.outcome"] for each in collector.named("invoke_agent")]
    assert outcomes == ["paused", "acted"]
    assert not any(b"swordfish" in body for body in collector.bodies)


async def test_content_is_told_where_it_is_wanted(ready_sqlite_url: str, collector: Collector) -> None:
    """With the owner's leave the spans hold what was said, but for what looks like a secret."""
    telemetry = watched(collector, content=True)
    async with open_world(ready_sqlite_url, telemetry=telemetry) as world:
        ada = await world.agent("Ada", reply("Hello, Noor."), "Greeted Noor.")
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        await world.say(noor, "Hi, my key is sk-swordfishswordfish", hall)
        await world.run()
    await telemetry.aclose()

    first, second = map(attributes, collector.named("chat"))
    asked, answered = (json.loads(first[f"gen_ai.{which}.messages"]) for which in ("input", "output"))
    assert [each["role"] for each in asked] == ["user"]
    assert "Hi, my key is" in asked[0]["parts"][0]["content"]
    assert (answered[0]["role"], answered[0]["parts"][0]["type"]) == ("assistant", "tool_call")
    assert [each["role"] for each in json.loads(second["gen_ai.input.messages"])] == ["user", "assistant", "tool"]
    [sent] = map(attributes, collector.named("execute_tool"))
    assert json.loads(sent["gen_ai.tool.call.arguments"]) == {"text": "Hello, Noor."}
    assert "messageId" in sent["gen_ai.tool.call.result"]
    assert not any(b"swordfish" in body for body in collector.bodies)


async def test_content_is_not_told_of_an_agent_that_knows_a_private_space(
    ready_sqlite_url: str, collector: Collector
) -> None:
    """Whoever reads the traces is not in the space."""
    telemetry = watched(collector, content=True)
    async with open_world(ready_sqlite_url, telemetry=telemetry) as world:
        ada = await world.agent("Ada", reply("I keep the nightingale."), "Kept it.", reply("Hello."), "Greeted Noor.")
        noor = await world.person("Noor")
        den, hall = await world.space("Den", noor, ada, private=True), await world.space("Hall", noor, ada)
        for text, where in (("Keep the nightingale.", den), ("Hello, Ada.", hall)):
            await world.say(noor, text, where)
            await world.run()
    await telemetry.aclose()

    assert len(collector.named("chat")) == 4
    assert not any("gen_ai.input.messages" in attributes(each) for each in collector.named("chat"))
    assert not any(b"nightingale" in body for body in collector.bodies)


async def test_a_collector_that_is_gone_holds_nobody_up(
    ready_sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Agents live on, and what could not be sent is lost."""
    async with collecting() as collector:
        pass
    telemetry = watched(collector)
    async with open_world(ready_sqlite_url, telemetry=telemetry) as world:
        ada = await world.agent("Ada", reply("Hello."), "Greeted Noor.")
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        await world.say(noor, "Hi", hall)
        await world.run()
        assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello."]
    await telemetry.aclose()
    assert "Hello" not in caplog.text


async def test_a_cycle_that_several_requests_woke_tells_of_them(collector: Collector) -> None:
    """It hangs from the first, and links to the others; those that are long past are not known any more."""
    tracer = Tracer(collector.address)
    for number in range(3):
        span = tracer.begin(f"request {number}", {})
        with traces.under(span):
            tracer.remember(f"event-{number}")
            assert passed_on()["traceparent"].split("-")[2] == f"{span.get_span_context().span_id:016x}"
        span.end()
    tracer.remember("event-9")
    assert len(tracer.causes(["event-2", "event-0", "event-9", "event-0"])) == 2
    assert passed_on() == {}
    await tracer.close()


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "REMEMBERED", 2)
    tracer = Tracer("http://127.0.0.1:9")
    with traces.under(tracer.begin("request", {})):
        for number in range(4):
            tracer.remember(str(number))
    assert [bool(tracer.causes([str(number)])) for number in range(4)] == [False, False, True, True]


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(InvalidInput, match=r"pip install 'denizen\[otel\]'"):
        Tracer("http://127.0.0.1:9")


async def test_settings_say_what_is_watched(collector: Collector, tmp_path: Path) -> None:
    """The variable that other programs know turns traces on, and the rest comes from denizen.toml."""
    (tmp_path / "denizen.toml").write_text("[telemetry]\ncontent = true\nopen_metrics = true\n")
    silent = load(environ={"HOME": str(tmp_path)}, folder=tmp_path).settings.telemetry
    told = load(environ={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}, folder=tmp_path).settings.telemetry
    assert telemetry_of(silent).tracer is None
    telemetry = telemetry_of(told)
    assert telemetry.tracer is not None
    assert (telemetry.content, telemetry.open_metrics) == (True, True)
    telemetry.tracer.begin("hello", {}).end()
    await telemetry.aclose()
    assert [span.name for span in collector.spans] == ["hello"]
