"""The public names are these: adding or removing one is a decision."""

from __future__ import annotations

import denizen


def test_the_public_names_are_exactly_these():
    assert denizen.__all__ == [
        "ManualClock",
        "NextStep",
        "Runtime",
        "StepContext",
        "call",
        "forever",
        "reply",
        "say",
        "scripted",
        "skip",
        "think",
        "tool",
    ]


def test_every_public_name_is_there_and_documented():
    for name in denizen.__all__:
        assert getattr(denizen, name).__doc__
