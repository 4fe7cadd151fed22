"""What a model leaves out of its text is found by rule."""

from __future__ import annotations

import pytest

from denizen.consciousness.missing_facts import MOST, MOST_CHARACTERS, missing


@pytest.mark.parametrize(
    ("original", "told", "left_out"),
    [
        ("We take GraphQL, not REST.", "They chose graphql.", "REST"),
        ("Pay invoice 4711 of 1,250 € by 3 May 2026.", "An invoice is due.", "3 May 2026; 4711; 1,250 €"),
        ("Pay invoice 4711 of 1,250 € by 3 May 2026.", "Invoice 4711: 1,250 € by 3 May 2026.", ""),
        ("Deploy on Friday at 14:30, or on 2026-05-04.", "Deploy soon.", "Friday; 14:30; 2026-05-04"),
        ("Ask Jürgen, or write to anna@example.org.", "Ask Jurgen.", "anna@example.org"),
        ("Morgen kommt Herr Weiß am 05.03.2026.", "Besuch kommt.", "05.03.2026; Herr Weiß"),
        ("It is 5 of them, and I'm fine.", "", ""),
        ("What was it? Nothing.", "", ""),
        ("The total is $9, which is 12 %.", "", "$9; 12 %"),
        ("Order 12 was meant, not order 123.", "Order 123.", "12"),
    ],
)
def test_dates_names_and_numbers_that_are_missing_are_listed(original: str, told: str, left_out: str) -> None:
    assert missing([original], told) == left_out


def test_a_receipt_is_short_however_much_is_missing() -> None:
    """A tool result may have thousands of numbers. What people wrote comes first."""
    receipt = missing(["It is for Lyon.", " ".join(str(1_000 + number) for number in range(2_000))], "")
    assert receipt.startswith("Lyon; 1000; 1001")
    assert len(receipt) <= MOST_CHARACTERS
    assert len(receipt.split("; ")) <= MOST


def test_the_same_thing_is_listed_once() -> None:
    assert missing(["To Lyon, then to LYON.", "From Lyon."], "") == "Lyon"
