"""What is wrong with what is remembered: doubles, junk, never used, contradictions, by scope."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from denizen.clock import SECOND
from denizen.ids import OrganizationId, SpaceId
from denizen.memory import hygiene
from denizen.memory.items import MEMORY, MemoryItem

DAY = 86_400 * SECOND
NOW = 100 * DAY


def memory(number: int, text: str, **more: Any) -> MemoryItem:
    plain = MemoryItem(
        number, f"m{number}", OrganizationId("o"), "user", "user:noor", SpaceId("s"), None, None, "item", "facts", text,
        90, ("message",), 1, None, None, NOW, NOW,
    )  # fmt: skip
    return replace(plain, **more)


def problems(*memories: MemoryItem) -> list[tuple[str, tuple[str, ...]]]:
    report = hygiene.examine(memories, NOW)
    return [(each.problem, tuple(one.id for one in each.memories)) for each in report.findings]


def test_a_memory_comes_from_outside_if_its_text_does_or_our_database_does_not_hold_it() -> None:
    assert memory(1, "Noor plays the violin.").source is None
    assert memory(1, "Noor plays the violin.", outside=True).source == MEMORY
    assert memory(0, "Noor plays the violin.").source == MEMORY


def test_the_same_words_in_another_order_are_a_duplicate() -> None:
    assert problems(memory(1, "Noor plays the violin."), memory(2, "The violin Noor plays.")) == [
        ("duplicate", ("m1", "m2"))
    ]


def test_the_same_words_of_another_owner_or_category_are_none() -> None:
    other = memory(2, "Noor plays the violin.", owner="user:sam")
    assert problems(memory(1, "Noor plays the violin."), other, replace(other, number=3, category="people")) == []


def test_what_says_nothing_rests_on_nothing_or_is_unsure_is_junk() -> None:
    found = problems(memory(1, "It is."), memory(2, "Noor sings.", sources=()), memory(3, "Sam rows.", confidence=10))
    assert found == [("junk", ("m1",)), ("junk", ("m2",)), ("junk", ("m3",))]


def test_what_nobody_was_reminded_of_in_thirty_days_was_never_used() -> None:
    young, old = NOW - 29 * DAY, NOW - 30 * DAY
    assert problems(memory(1, "Noor sings.", uses=0, created_at=young)) == []
    assert problems(memory(1, "Noor sings.", uses=0, created_at=old)) == [("never used", ("m1",))]


def test_two_that_cannot_both_be_true_contradict_each_other() -> None:
    assert problems(memory(1, "Noor eats fish on Fridays."), memory(2, "Noor does not eat fish on Fridays.")) == [
        ("contradiction", ("m1", "m2"))
    ]
    assert problems(memory(1, "The rent is 900 euros."), memory(2, "The rent is 950 euros.")) == [
        ("contradiction", ("m1", "m2"))
    ]


def test_the_report_counts_by_scope_and_leaves_out_what_was_superseded() -> None:
    report = hygiene.examine(
        [
            memory(1, "Noor sings.", sources=()),
            memory(2, "Tea is at four.", scope="organization", owner="organization:o"),
            memory(3, "Noor sang.", superseded_by="m1"),
        ],
        NOW,
    )
    assert (dict(report.counts), report.superseded) == ({"user": 1, "organization": 1}, 1)
    assert [(each.scope, each.problem) for each in report.findings] == [("user", "junk")]
