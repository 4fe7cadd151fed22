"""`denizen panel`: opened, filled, asked and read in a terminal, here and on a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from io import StringIO
from pathlib import Path

from rich.console import Console

from denizen.cli.panel.columns import Columns, draw
from denizen.cli.panel.following import PanelEvents
from denizen.client import Connected, LifeEvent
from denizen.shapes.events import PanelDelta, PanelReply
from denizen.shapes.panels import Panel, ReplyOut, RoundOut
from tests.cli.conftest import Run
from tests.made import made


def test_a_panel_on_this_machine(run: Run, tmp_path: Path) -> None:
    made = json.loads(run("panel", "create", "Board", "Seth Godin", "--synthesis", "--json").stdout)
    assert [each["handle"] for each in made["advisors"]] == ["seth-godin"]
    added = run("panel", "advisors", "add", "board", "Martin Buber", "--description", "You look.", "--json")
    assert json.loads(added.stdout)[0]["description"] == "You look."
    assert (
        "@martin-buber"
        in run("panel", "advisors", "edit", "board", "@seth-godin", "--inactive").stdout
        + run("panel", "advisors", "reorder", "board", "martin buber").stdout
    )
    cost = json.loads(run("panel", "cost", "board", "Well?", "--json").stdout)
    assert [each["name"] for each in cost["advisors"]] == ["Martin Buber"]
    assert "about $0.0000, $0.0000 at most" in run("panel", "cost", "board", "Well?").stdout
    asked = run("panel", "ask", "board", "Well?", "--vote", "Go?", "--json")
    told = json.loads(asked.stdout)
    assert [(each["kind"], each["all_completed"]) for each in told] == [("ask", True), ("vote", True)]
    [said] = told[0]["advisor_responses"].values()
    assert (said["name"], said["state"], said["phase"]["turn"]) == ("Martin Buber", "done", 1)
    document = tmp_path / "advisors.json"
    document.write_text(run("panel", "advisors", "export", "board").stdout)
    run("panel", "create", "Other")
    brought = json.loads(run("panel", "advisors", "import", "other", str(document), "--json").stdout)
    assert [each["name"] for each in brought] == ["Martin Buber", "Seth Godin"]
    assert "is removed. Its replies stay." in run("panel", "advisors", "remove", "other", "@seth-godin").stderr
    assert "> Well?" in run("panel", "transcript", "board").stdout
    nowhere = run("panel", "transcript", "board", "-o", "no-such-folder/board.md")
    assert (nowhere.exit_code, "board.md cannot be written (No such file or directory)." in nowhere.stderr) == (1, True)
    assert "Board" in run("panel", "list").stdout
    refused = run("panel", "ask", "nothing", "Well?")
    assert (refused.exit_code, "There are: Board, Other" in refused.stderr) == (1, True)


def test_columns_grow_with_what_is_heard() -> None:
    """Side by side where there is room; what a broken attempt said is gone; an error is told as one."""
    seth, buber = _reply("1", "Seth"), _reply("2", "Buber")
    panel = Panel(id="p", name="Board", private=False, turns=1, settings={}, advisors=[])
    columns = Columns(panel, 1)
    columns.see(_round(seth, buber))
    for epoch, offset, text in ((1, 0, "Half of"), (2, 0, "Now"), (2, 3, " whole")):
        said = PanelDelta(
            panel="p", round="r", advisor="1", part="reply", epoch=epoch, offset=offset, text=text, thinking=False
        )
        columns.hear(said)
    assert columns.voices["r", "1", "reply"].text == "Now whole"
    assert not columns.all_said
    failed = {"state": "failed", "completed": True, "error": {"code": "timed_out", "message": "Too slow."}}
    for reply in (
        seth.model_copy(update={"state": "done", "completed": True, "content": "Now whole.", "epoch": 2}),
        ReplyOut.model_validate({**buber.model_dump(), **failed}),
    ):
        columns.hear(PanelReply(panel="p", round="r", all_completed=False, reply=reply))
    assert columns.all_said
    for width, rows in ((60, 2), (120, 1)):
        shown = _drawn(columns, width)
        assert "Now whole." in shown
        assert "Too slow. [timed_out]" in shown
        assert len([line for line in shown.splitlines() if line.startswith("╭")]) == rows


def test_while_it_grows_no_more_is_drawn_than_fits_on_the_screen() -> None:
    """The end of what each says; whole in the end, with what was expected of it and how it was voted."""
    panel = Panel(id="p", name="Board", private=False, turns=1, settings={}, advisors=[])
    columns = Columns(panel, 1)
    long = "word " * 500 + "end."
    voices = [_reply(str(number), f"A{number}").model_copy(update={"content": long}) for number in range(4)]
    done = [each.model_copy(update={"state": "done", "completed": True}) for each in voices]
    verdicts = {"verdicts": [{"expected": "is brief", "passed": False, "why": ""}], "passed": False}
    check = done[0].model_copy(update={"part": "check", "result": verdicts})
    camps = [{"position": "go", "advisors": ["0", "3"], "confidence": 1.0, "weight": 2.0}]
    tally = {"leading": "go", "camps": camps, "dissent": {}}
    columns.see(_round(*done, checks={"0": check.model_dump()}, tally=tally))
    growing, whole = _drawn(columns, 100, height=24), _drawn(columns, 100)
    assert len(growing.splitlines()) <= 24
    assert growing.count("end.") == whole.count("end.") == 4
    assert whole.count("word") == 4 * 500
    assert "✗ is brief" in whole
    assert "go: A0, A3" in whole


async def test_what_is_not_heard_in_time_is_heard_later() -> None:
    """Waiting ends, the stream goes on."""
    may_go_on = asyncio.Event()

    async def events() -> AsyncGenerator[LifeEvent]:
        await may_go_on.wait()
        yield Connected()

    async with aclosing(PanelEvents(events())) as heard:
        assert await heard.next(0) is None
        may_go_on.set()
        assert await heard.next() == Connected()


def _drawn(columns: Columns, width: int, height: int | None = None) -> str:
    console = Console(width=width, record=True, file=StringIO())
    console.print(draw(columns, width, height=height))
    return console.export_text()


def _reply(id: str, name: str) -> ReplyOut:
    return made(
        ReplyOut, advisor=id, part="reply", name=name, state="running", completed=False, content="", epoch=1, error=None
    )


def _round(*replies: ReplyOut, **more: object) -> RoundOut:
    return RoundOut.model_validate(
        {
            "id": "r",
            "panel": "p",
            "turn": 1,
            "step": 0,
            "kind": "ask",
            "message_id": "m",
            "message": None,
            "asked_by": "n",
            "question": None,
            "advisor_responses": {each.advisor: each.model_dump() for each in replies},
            "all_completed": False,
            "synthesis": None,
            "checks": {},
            "tally": None,
            "input_tokens": 0,
            "output_tokens": 0,
            "cost_micros": 0,
            "created_at": "2026-01-05T09:00:00Z",
            "completed_at": None,
            **more,
        }
    )


def test_a_server_that_env_names_is_the_one_that_is_asked(run: Run) -> None:
    """As every command does, not only when it is in the environment already."""
    Path(".env").write_text("DENIZEN_URL=http://127.0.0.1:1\nDENIZEN_TOKEN=dz_x\n")
    for command in (("panel", "list"), ("spaces", "list")):
        refused = run(*command)
        assert (refused.exit_code, "http://127.0.0.1:1" in refused.stderr) == (1, True)


def test_what_was_answered_here_is_thought_over_before_the_command_ends(run: Run) -> None:
    """Nobody else is told that there is something to think over."""
    run("panel", "create", "Board", "Seth", "--reflection", "basic")
    run("panel", "ask", "board", "I hate this, it is terrible and awful.")
    (seth,) = json.loads(run("panel", "mind", "show", "board", "--json").stdout)
    assert seth["mood"] == "empathetic"
