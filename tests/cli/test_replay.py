"""`denizen replay` and `denizen fork`: the past of an agent, on the command line."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console
from typer.testing import Result

from denizen import Runtime, reply, scripted, skip
from denizen.cli import replay as command
from denizen.cli.api import open_api
from denizen.cli.home import make_home
from denizen.first_start import set_up_home
from denizen.settings.loading import load
from denizen.shapes.minds import RequestOut

pytestmark = pytest.mark.usefixtures("ready_home")

Run = Callable[..., Result]


@pytest.fixture
def lived(run: Run) -> Run:
    """The house of a person who has asked Ada two things. Ada skipped a third."""

    async def live() -> None:
        settings = load().settings
        make_home(settings)
        model = scripted(
            [reply("It is \x1b[31mtwelve\x1b[0m."), reply("Noon.")],
            "Told the time.",
            skip("no"),
            reply("Bye."),
            "Said goodbye.",
        )
        async with Runtime(settings.database_url, models={"mine": model}) as denizen:
            world = await set_up_home(denizen, "Noor")
            ada = await denizen.people.find("ada", organization=world.owner.organization_id)
            await denizen.agents.edit(ada.id, model="mine")
            bert = await denizen.people.create("Bert", organization=world.owner.organization_id)
            # In company: nobody waits for an answer, and a skip leaves no trace.
            room = await denizen.spaces.create("Clock room", [world.owner, bert, ada])
            for text in ("What time is it?", "Nothing.", "Goodbye!"):
                await denizen.spaces.post(room, world.owner, text)
                await denizen.run_until_idle()

    asyncio.run(live())
    return run


def test_a_cycle_is_shown_with_what_was_asked_and_what_came_back(lived: Run) -> None:
    """The first request whole, then only what is new; and nothing in it commands the terminal."""
    result = lived("replay", "@ada", "--cycle", "1")
    assert result.exit_code == 0, result.output
    shown = result.stdout
    for part in ("cycle 1 · step 0 · mine", "IDENTITY:", '"What time is it?"', "→ send_message", "← send_message"):
        assert part in shown
    assert shown.count("IDENTITY:") == 1
    assert shown.count("→ send_message") == 2
    assert "cycle 1 · step 1 · mine" in shown
    assert "Told the time." in shown
    assert "tokens read" in shown
    assert "\x1b" not in shown


def test_one_step_is_shown_whole(lived: Run) -> None:
    shown = lived("replay", "ada", "--cycle", "1", "--step", "1").stdout
    assert shown.index("IDENTITY:") < shown.index("→ send_message") < shown.index("Told the time.")
    assert "step 0" not in shown
    short = lived("replay", "ada", "--cycle", "1", "--step", "1", "--short").stdout
    assert "INSTRUCTIONS:" in shown
    assert "INSTRUCTIONS:" not in short
    assert "characters)" in short


def test_programs_read_it_as_json(lived: Run) -> None:
    first, second = json.loads(lived("replay", "@ada", "--cycle", "2", "--json").stdout)
    assert (first["cycle"], first["step"], first["model"]) == (2, 0, "mine")
    assert first["messages"][-1]["parts"][0]["content"].startswith("[INBOX - 1 new event]")
    assert "send_message" in [tool["name"] for tool in first["tools"]]
    assert first["settings"]["max_tokens"] > 0
    assert first["response"]["parts"][0]["tool_name"] == "send_message"
    assert second["messages"][:-2] == first["messages"]
    assert (second["response"]["parts"][0]["content"], second["results"]) == ("Said goodbye.", None)


def test_another_model_is_asked_and_the_difference_shown(lived: Run) -> None:
    result = lived("replay", "@ada", "--cycle", "1", "--step", "0", "--model", "demo")
    assert result.exit_code == 0, result.output
    for part in (
        "--- mine",
        "+++ demo",
        "-    text: Noon.",
        " → send_message",
        "+    text: ",
        "$0.000000",
        "No tool was run",
    ):
        assert part in result.stdout
    (told,) = json.loads(lived("replay", "@ada", "--cycle", "1", "--step", "0", "--model", "demo", "--json").stdout)
    assert told["again"]["model"] == "demo"
    assert told["again"]["difference"][:2] == ["--- mine", "+++ demo"]
    assert [each["summary"] for each in cycles_of(lived, "ada")] == ["Said goodbye.", "Told the time."]


def cycles_of(run: Run, agent: str) -> list[dict[str, Any]]:
    return json.loads(run("inspect", agent, "--json").stdout)["last_cycles"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["@ada", "--cycle", "3"], "its cycles are 1 to 2. Of a cycle that was skipped"),
        (["@ada", "--cycle", "1", "--step", "7"], "Cycle 1 has no step 7: its steps are 0 to 1"),
        (["@bo", "--cycle", "1"], "it has lived none yet"),
        (["@nobody", "--cycle", "1"], "no agent"),
        (["@noor", "--cycle", "1"], "no agent"),
        (["@ada", "--cycle", "1", "--model", "nonesuch"], "no model 'nonesuch'"),
    ],
)
def test_what_is_not_there_is_said(lived: Run, arguments: list[str], says: str) -> None:
    result = lived("replay", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert says in " ".join(result.stderr.split())


def test_a_terminal_is_drawn_on_within_its_width(lived: Run) -> None:
    async def rebuilt() -> Any:
        async with open_api(load().settings, None, None) as client:
            return await client.replay("@ada", 1)

    console = Console(width=80, force_terminal=True, record=True, file=io.StringIO())
    command._show(console, asyncio.run(rebuilt()), short=False)
    drawn = console.export_text().splitlines()
    assert max(map(len, drawn)) <= 80
    assert any("What time is it?" in line for line in drawn)


def test_a_fork_is_made_and_has_the_past(lived: Run) -> None:
    made = lived("fork", "@ada", "--at", "1", "--handle", "ada-then", "--name", "Ada of then")
    assert made.exit_code == 0, made.output
    assert "@ada-then has lived 1 cycle." in made.stdout
    assert [each["summary"] for each in cycles_of(lived, "@ada-then")] == ["Told the time."]
    assert [each["summary"] for each in cycles_of(lived, "@ada")] == ["Said goodbye.", "Told the time."]
    same = [lived("replay", who, "--cycle", "1", "--json").stdout for who in ("@ada", "@ada-then")]
    assert without_times(json.loads(same[0])) == without_times(json.loads(same[1]))
    told = json.loads(lived("fork", "@ada", "--handle", "ada-now", "--json").stdout)
    assert (told["handle"], told["name"], told["cycles"]) == ("ada-now", "Ada", 2)
    unnamed = [json.loads(lived("fork", "@ada", "--at", "1", "--json").stdout)["handle"] for _ in range(2)]
    assert unnamed == ["ada-2", "ada-3"]
    taken = lived("fork", "@ada", "--handle", "ada-now")
    assert (taken.exit_code, "ada-now" in taken.stderr) == (1, True)


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(each) for name, each in value.items() if name != "timestamp"}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def test_the_title_of_a_request_says_where_its_text_from_outside_came_from() -> None:
    base = {
        "cycle": 1,
        "step": 0,
        "model": "m",
        "settings": {},
        "tools": [],
        "messages": [],
        "tokens": 0,
        "response": None,
        "results": None,
    }
    for outside, told in (("", ""), ("from outside: get_page", " · from outside: get_page")):
        title = command._title(RequestOut.model_validate({**base, "outside": outside}))  # pyright: ignore[reportPrivateUsage]
        assert title.plain == f"cycle 1 · step 0 · m · 0 messages, about 0 tokens · 0 tools{told}"
