"""What a typed line means."""

from __future__ import annotations

import pytest

from denizen.cli.chat.typed import Command, Mistyped, Say, Typed, read_line


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("   ", None),
        ("Hello", Say("Hello")),
        ("  indented\n", Say("  indented")),
        ("/join Kitchen garden", Command("/join", "Kitchen garden")),
        ("/S kitchen", Command("/join", "kitchen")),
        ("/q", Command("/quit", "")),
        ("//etc is a folder", Say("/etc is a folder")),
        ("what is /etc?", Say("what is /etc?")),
        ("/jion x", Mistyped("There is no command /jion. Did you mean /join? To say it anyway, write //jion.")),
    ],
)
def test_a_line_is_something_to_say_or_a_command(line: str, meaning: Typed | None) -> None:
    assert read_line(line) == meaning
