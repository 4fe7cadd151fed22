"""How messages look, on any width, and that no text can steer the terminal."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from pydantic import JsonValue
from rich.console import Console, ConsoleRenderable

from denizen.cli.chat import rendering
from denizen.cli.chat.questions import Ended, PendingQuestion, Questions, Used
from denizen.cli.chat.screen import fit
from denizen.client import Author, Call, Message
from tests.made import made


def message(text: str, *, name: str = "Ada", day: int = 5) -> Message:
    at = datetime(2026, 1, day, 9, 30, tzinfo=UTC)
    by = Author(id="a", kind="agent", name=name)
    return made(Message, id=f"m{day}", space_id="s", seq=day, author=by, text=text, files=[], created_at=at)


def shown(*blocks: ConsoleRenderable, columns: int = 40, colour: bool = False) -> str:
    file = io.StringIO()
    console = Console(file=file, width=columns, force_terminal=colour, no_color=not colour, highlight=False)
    console.print(*blocks, sep="\n")
    return file.getvalue()


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "local", lambda moment: moment)


def test_a_message_has_its_author_its_time_its_text_and_its_reactions() -> None:
    text = "Good **morning**:\n\n- tea\n- milk and [more](https://example.com)"
    assert shown(*rendering.message_block(message(text), "me")) == (
        "\nAda  09:30\n  Good morning:\n\n   • tea\n   • milk and more (https://example.com)\n  👍\n"
    )


def test_a_day_is_told_once() -> None:
    blocks, day = rendering.conversation([message("a"), message("b"), message("c", day=6)], "me", None)
    text = shown(*blocks, columns=60)
    assert text.count("Monday, 5 January 2026") == 1
    assert text.count("Tuesday, 6 January 2026") == 1
    assert rendering.conversation([message("d", day=6)], "me", day)[0][1:] != []
    assert "January" not in shown(*rendering.conversation([message("d", day=6)], "me", day)[0])


def question(tool: str = "confirm_action", text: str = "Deploy **v2.1**?", **more: JsonValue) -> Call:
    at = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
    arguments: JsonValue = {"question": text, **more}
    return made(
        Call,
        id="c",
        agent_id="a",
        space_id="s",
        tool=tool,
        mode="pause",
        state="waiting",
        arguments=arguments,
        created_at=at,
    )


def test_a_question_says_who_asks_what_and_how_to_answer() -> None:
    asked = PendingQuestion(question(where="the barn"), None, {})
    assert shown(*rendering.news_block(asked, {"a": "Ada"}), columns=60) == (
        "Ada  asks: confirm action\n  Deploy v2.1?\n  where: the barn\n  /yes, /no, or /answer and your own words\n"
    )


def test_one_of_several_questions_has_its_number_and_names_the_others() -> None:
    asked = PendingQuestion(question(), 2, {1: question(text="Water the plants?")})
    assert shown(*rendering.news_block(asked, {}), columns=60) == (
        "Someone  asks 2: confirm action\n"
        "  Deploy v2.1?\n"
        "  /yes 2, /no 2, or /answer 2 and your own words\n"
        "  Besides waits: 1 “Water the plants?”\n"
    )


def test_all_that_waits_can_be_listed() -> None:
    known = {1: question(), 3: question(text="Still?").model_copy(update={"state": "expired"})}
    listed = shown(rendering.table_of_questions(Questions(known), {"a": "Ada"}), columns=100)
    assert [line.split()[:3] for line in listed.splitlines()] == [["1", "Ada", "Deploy"], ["3", "Ada", "Still?"]]
    assert "a late answer reaches the agent" in listed
    assert shown(rendering.table_of_questions(Questions(), {})) == "Nobody waits for an answer here.\n"


@pytest.mark.parametrize("columns", [12, 40, 100])
def test_nothing_is_wider_than_the_terminal(columns: int) -> None:
    """Long words, code and names are folded or cut."""
    text = "wörd " * 30 + "\n\n```python\nprint('" + "x" * 200 + "')\n```\n" + "y" * 200
    for line in shown(*rendering.message_block(message(text, name="N" * 120), "me"), columns=columns).splitlines():
        assert len(line) <= columns


@pytest.mark.parametrize("evil", ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\r", "\x08", "\u202e", "\ud800", "\x00"])
def test_a_text_cannot_steer_the_terminal(evil: str) -> None:
    """Neither what is said nor a name: what a terminal would obey is shown as a mark."""
    for text in (f"before {evil} after", f"```\n{evil}\n```", f"[{evil}](http://{evil})", f"`{evil}`"):
        seen = shown(*rendering.message_block(message(text, name=f"A{evil}"), "me"))
        assert evil not in seen
        assert "\ufffd" in seen
    asked = question(tool=f"x{evil}", text=f"before {evil} after", where=evil)
    for news in (PendingQuestion(asked, 2, {1: asked}), Ended(asked, 2), Used(asked)):
        assert evil not in shown(*rendering.news_block(news, {"a": f"A{evil}"})).replace("\ufffd", "")
    assert evil not in shown(rendering.table_of_questions(Questions({1: asked}), {}))


def test_colours_are_steady_and_ones_own_is_nobody_elses() -> None:
    assert {rendering.colour_of(name, own=False) for name in ("Ada", "Bo", "Noor")} <= set(rendering.COLOURS)
    assert rendering.colour_of("Ada", own=False) != rendering.colour_of("Bo", own=False)
    assert rendering.colour_of("Noor", own=True) == rendering.OWN_COLOUR
    assert rendering.OWN_COLOUR not in rendering.COLOURS


def test_the_bar_drops_what_matters_least() -> None:
    parts = [("Kitchen", 1), ("not connected", 0), ("Ada is thinking", 2), ("with Ada and Bo", 4), ("/help", 5)]
    assert fit(parts, 80) == " Kitchen · not connected · Ada is thinking · with Ada and Bo · /help "
    assert fit(parts, 45) == " Kitchen · not connected · Ada is thinking "
    assert fit(parts, 20) == " not connected "
    assert fit(parts, 10) == " not conn…"
