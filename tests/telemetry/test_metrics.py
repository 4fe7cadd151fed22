"""Metrics: what is counted is what happened, read by Prometheus' own parser."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from decimal import Decimal
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text as sql
from sqlalchemy import update

from denizen import Runtime, call, reply, skip, tool
from denizen.agents import gauges
from denizen.cycles.ledger import Charge
from denizen.cycles.watching import count
from denizen.errors import InvalidInput, ModelRejected
from denizen.ids import AgentId
from denizen.inbox import parking
from denizen.models.prices import Price
from denizen.storage.database import Tx, statement
from denizen.storage.schema import events
from denizen.telemetry.metrics import MOST_ROWS, Counter, Gauge, Histogram, Metrics
from denizen.telemetry.telemetry import OFF, Telemetry
from denizen.tools.settings import ClientTool
from tests.world import UNHURRIED, JumpingClock, World, open_world

PAGE = Path(__file__).parents[2] / "docs" / "telemetry.md"

Numbers = dict[tuple[str, ...], float]

LOOKED_UP = (
    "denizen_events",
    "denizen_calls_waiting",
    "denizen_oldest_unanswered_seconds",
    "denizen_agents_parked",
)


def read(text: str) -> Numbers:
    """Every sample by its name and the values of its labels, but for buckets."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


@pytest.fixture
async def counted(ready_url: str) -> AsyncGenerator[World]:
    """A world in which thinking costs something: once on SQLite, once on PostgreSQL."""
    prices = {"scripted": Price(Decimal(1), Decimal(4))}
    async with open_world(ready_url, clock=JumpingClock(), pace=UNHURRIED, prices=prices) as world:
        yield world


async def test_the_numbers_are_what_happened(counted: World) -> None:
    """Cycles, steps, skips, tools, tokens, cost and posts, as the ledger and the spaces have them."""

    @tool
    async def weather() -> str:
        """The weather."""
        return "Sunny."

    ada = await counted.agent(
        "Ada",
        call("weather"),
        reply("Sunny."),
        "Told Noor.",
        skip("Nothing for me"),
        reply("One moment."),
        ModelRejected("no"),
        "Told Noor.",
        ModelRejected("no"),
        tools=[weather],
    )
    noor = await counted.person("Noor")
    hall = await counted.space("Hall", noor, await counted.person("Bert"), ada)
    for text in ("The weather?", "Thanks.", "And tomorrow?"):
        await counted.say(noor, text, hall)
        counted.clock.advance(0.2)
        await counted.run()
    await counted.run_after(60)
    await counted.say(noor, "And then?", hall)
    await counted.run()

    found = read(await counted.denizen.metrics())
    spent = await counted.denizen.budgets.spending()
    input_tokens = sum(each.input_tokens for each in spent)
    output_tokens = sum(each.output_tokens for each in spent)
    assert {name[1:]: value for name, value in found.items() if name[0] == "denizen_cycles_total"} == {
        ("acted",): 2,
        ("skipped",): 1,
        ("postponed",): 1,
        ("undone",): 1,
    }
    assert found["denizen_cycle_stops_total", "answered"] == 2
    assert found["denizen_skips_total", "agent"] == 1
    assert found["denizen_steps_total", "python"] == 6
    assert found["denizen_model_errors_total", "python", "model_rejected"] == 2
    assert found["denizen_tool_calls_total", "outside", "done"] == 1
    assert found["denizen_tool_calls_total", "own", "done"] == 2
    assert found["denizen_tokens_total", "python", "input"] == input_tokens
    assert found["denizen_tokens_total", "python", "output"] == output_tokens
    dollars = (input_tokens + 4 * output_tokens) / 1_000_000
    assert found["denizen_cost_dollars_total", "python"] == pytest.approx(dollars, abs=1e-4)
    assert found["denizen_posts_total",] == len(await counted.transcript(hall)) == 6
    assert found["denizen_wake_seconds_count",] == 4
    assert found["denizen_wake_seconds_sum",] == pytest.approx(0.6)
    assert found["denizen_cycle_seconds_count",] == found["denizen_window_tokens_count",] == 5
    assert found["denizen_first_chunk_seconds_count",] == 6
    assert found["denizen_cached_share",] == 0
    assert found["denizen_database_commits_total",] > 0
    assert found["denizen_database_up",] == 1


def test_tokens_are_counted_by_their_kind() -> None:
    """Those of a cache cost less, and others more: each kind has a line of its own."""
    metrics = Metrics()
    count(metrics, Charge("m", 100, 20, 70, 5))
    found = {name[1:]: value for name, value in read(metrics.exposition()).items() if name[0] == "denizen_tokens_total"}
    assert found == {("m", "input"): 100, ("m", "output"): 20, ("m", "cache_read"): 70, ("m", "cache_write"): 5}


async def test_what_waits_is_looked_up(counted: World) -> None:
    """Events by their state, and calls that wait for people; nothing of it is counted twice by asking twice."""
    choose = ClientTool(name="choose", description="Let them choose.", parameters={"type": "object"})
    ada = await counted.agent("Ada", call("choose"), tools=[choose])
    bob = await counted.agent("Bob", model=None)
    noor = await counted.person("Noor")
    await counted.say(noor, "Choose", await counted.space("Hall", noor, ada))
    await counted.run()
    elsewhere = await counted.space("Cellar", noor, bob)
    for text in ("One", "Two", "Three"):
        await counted.say(noor, text, elsewhere)
    await counted.denizen.db.write(_one_dies)

    for _ in range(2):
        found = read(await counted.denizen.metrics())
        by_state = {state: found["denizen_events", state] for state in ("pending", "taken", "dead")}
        assert by_state == {"pending": 2, "taken": 1, "dead": 1}
        assert found["denizen_calls_waiting",] == 1


async def test_who_waits_longest_and_who_is_parked_is_looked_up(counted: World) -> None:
    """A suspended agent is not waited for: whoever suspended it knows."""
    noor = await counted.person("Noor")
    ada, bob = await counted.agent("Ada"), await counted.agent("Bob")
    found = read(await counted.denizen.metrics())
    assert found["denizen_oldest_unanswered_seconds",] == 0
    assert found["denizen_agents_parked", "key"] == 0
    await counted.denizen.agents.suspend(bob)
    await counted.say(noor, "Bob?", await counted.space("Cellar", noor, bob))
    counted.clock.advance(100)
    await counted.say(noor, "Ada?", await counted.space("Hall", noor, ada))
    counted.clock.advance(50)
    await counted.denizen.db.write(_reject_key, ada.id)
    found = read(await counted.denizen.metrics())
    assert found["denizen_oldest_unanswered_seconds",] == 50
    assert (found["denizen_agents_parked", "key"], found["denizen_agents_parked", "model"]) == (1, 0)


def _reject_key(tx: Tx, agent_id: AgentId) -> None:
    parking.park(tx, agent_id, "key", provider="OpenAI")


_kill = statement(update(events).where(events.c.number == 2).values(state="dead"))


def _one_dies(tx: Tx) -> None:
    assert tx.run(_kill) == 1


async def test_what_triage_skips_is_counted_apart(ready_sqlite_url: str) -> None:
    async with open_world(ready_sqlite_url, triages={"never": lambda waiting: "not now"}) as world:
        ada = await world.agent("Ada", cycle={"triage": {"by": "never"}})
        noor, sam = await world.person("Noor"), await world.person("Sam")
        await world.say(noor, "Hello, Sam.", await world.space("Hall", noor, sam, ada))
        await world.run()

        found = read(await world.denizen.metrics())
        assert found["denizen_skips_total", "triage"] == 1
        assert not [name for name in found if name[0] == "denizen_cycles_total"]


async def test_a_database_that_does_not_answer_is_told_of(small_world: World) -> None:
    """The numbers of the process are shown all the same; of the others, none is invented."""
    metrics = Metrics()
    await gauges.exposition(metrics, small_world.denizen.db, awake=0)
    await small_world.denizen.db.close()
    found = read(await gauges.exposition(metrics, small_world.denizen.db, awake=3))
    assert (found["denizen_database_up",], found["denizen_agents_awake",]) == (0, 3)
    assert not [name for name in found if name[0] in LOOKED_UP]
    await small_world.open()


async def test_looking_up_reads_indexes_only(small_world: World) -> None:
    """However many events are done, they are not walked through."""

    def plans(tx: Tx) -> list[str]:
        return [
            row[3]
            for each in (gauges._by_state, gauges._waiting, gauges._oldest)
            for row in tx.all(statement(sql(f"EXPLAIN QUERY PLAN {each.sqlite}")))
            if "SCAN" in row[3] or "SEARCH" in row[3]
        ]

    told = await small_world.denizen.db.read(plans)
    assert any("ix_events_open" in each for each in told)
    assert any("ix_calls_" in each for each in told)
    assert not [each for each in told if each in ("SCAN events", "SCAN calls")]


async def test_off_means_off(ready_sqlite_url: str) -> None:
    async with Runtime(ready_sqlite_url, telemetry=OFF) as runtime:
        with pytest.raises(InvalidInput, match="has no metrics"):
            await runtime.metrics()


async def test_two_runtimes_count_apart(small_world: World) -> None:
    async with Runtime(small_world.url) as other:
        noor = await small_world.person("Noor")
        await small_world.say(noor, "Hi", await small_world.space("Hall", noor))
        assert read(await other.metrics())["denizen_posts_total",] == 0
        assert read(await small_world.denizen.metrics())["denizen_posts_total",] == 1


def test_the_text_is_what_prometheus_reads() -> None:
    """Every kind, awkward label values, and the bounds of a histogram."""
    metrics = Metrics()
    odd = 'a"b\\c\nd'
    metrics.steps.add(2, odd)
    metrics.cost.add(0.25, "m")
    for value in (0.001, 0.005, 0.3, 99.0):
        metrics.http_seconds.observe(value, "/x")
    families = {each.name: each for each in text_string_to_metric_families(metrics.exposition())}
    assert set(families) == {each.name.removesuffix("_total") for each in metrics.families()}
    for family in metrics.families():
        parsed = families[family.name.removesuffix("_total")]
        assert (parsed.type, parsed.documentation) == (family.kind, family.about)
    [steps] = families["denizen_steps"].samples
    assert (steps.labels, steps.value) == ({"model": odd}, 2)
    buckets = {
        sample.labels["le"]: sample.value
        for sample in families["denizen_http_request_seconds"].samples
        if sample.name.endswith("_bucket")
    }
    assert (buckets["0.005"], buckets["0.25"], buckets["0.5"], buckets["30"], buckets["+Inf"]) == (2, 2, 3, 3, 4)


def test_labels_cannot_grow_without_end() -> None:
    """What comes too late is counted together."""
    counter, histogram = Counter("c_total", "", "a", "b"), Histogram("h", "", "a", bounds=(1.0,))
    for number in range(MOST_ROWS + 50):
        counter.add(1, str(number), "b")
        histogram.observe(0.5, str(number))
    assert len(counter.values) == MOST_ROWS + 1
    assert counter.values["other", "other"] == 50
    assert sum(counter.values.values()) == MOST_ROWS + 50
    counts = [line for line in histogram.samples() if line.startswith("h_count")]
    assert len(counts) == MOST_ROWS + 1
    assert 'h_count{a="other"} 50' in counts


def test_a_gauge_is_what_it_was_set_to() -> None:
    gauge = Gauge("g", "")
    assert list(gauge.samples()) == []
    gauge.change(2)
    gauge.change(-1)
    assert list(gauge.samples()) == ["g 1"]
    gauge.clear()
    assert list(gauge.samples()) == []


def test_every_metric_is_on_the_page() -> None:
    """With its kind, its labels and what it is; and nothing else is there."""
    rows = re.findall(r"^\| `(denizen_\w+)` \| (\w+) \| ([^|]*) \| ([^|]+) \|$", PAGE.read_text(), flags=re.MULTILINE)
    told = {name: (kind, tuple(re.findall(r"`(\w+)`", labels)), about) for name, kind, labels, about in rows}
    assert told == {each.name: (each.kind, each.labels, each.about) for each in Metrics().families()}


def test_every_attribute_is_on_the_page() -> None:
    """Each that the code can set, and no other."""
    source = Path(gauges.__file__).parents[1]
    files = ("cycles/watching.py", "server/request_telemetry.py", "telemetry/traces.py")
    code = "".join((source / each).read_text() for each in files)
    pattern = r"((?:gen_ai|denizen|http|error|service)\.[a-z_]+(?:\.[a-z_]+)*)"
    used = set(re.findall(rf'"{pattern}"', code)) - {"http.response.start"}  # which is ASGI's
    told = set(re.findall(rf"^\| `{pattern}` \|", PAGE.read_text(), flags=re.MULTILINE))
    assert told == used


def test_the_default_counts_and_traces_nothing() -> None:
    runtime = Runtime()
    assert runtime.telemetry.metrics is not None
    assert (runtime.telemetry.tracer, runtime.telemetry.content, runtime.telemetry.open_metrics) == (None, False, False)
    assert Telemetry() == OFF
