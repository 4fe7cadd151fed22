"""Which space is meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from denizen.cli.chat.finding import find_space
from denizen.cli.chat.namesakes import namesakes
from denizen.client import Me, Member, Space
from denizen.errors import InvalidInput
from tests.made import made

ME = made(Me, id="n", handle="noor", name="Noor")
NOOR = made(Member, id="n", kind="human", handle="noor", name="Noor")
ADA = made(Member, id="a", kind="agent", handle="ada", name="Ada")
BO = made(Member, id="b", kind="agent", handle="bo", name="Bo")
DAY = datetime(2026, 1, 5, 10, tzinfo=UTC)
CY = made(Member, id="c", kind="agent", handle="cy", name="Cy")


def space(name: str, *others: Member, private: bool = False) -> Space:
    return made(Space, id=f"id-{name}", name=name, private=private, last_seq=0, members=(NOOR, *others))


def kitchen(id: str, *others: Member, at: datetime = DAY) -> Space:
    return made(Space, id=id, name="Kitchen", last_seq=0, members=(NOOR, *others), created_at=at)


SPACES = [
    space("Kitchen", ADA, BO),
    space("Kitchen garden", BO, CY),
    space("Noor and Ada", ADA, private=True),
    space("Talks", BO),
    space("Noor and Bo", BO, private=True),
    space("Noor and Bo: the barn", BO, private=True),
]


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("kitchen", "Kitchen"),
        ("KITCHEN G", "Kitchen garden"),
        ("id-Talks", "Talks"),
        ("t", "Talks"),
        ("@ada", "Noor and Ada"),
        ("@BO", "Noor and Bo"),
        ("ada", "Noor and Ada"),
        ("Bo", "Noor and Bo"),
    ],
)
def test_a_space_is_found(wanted: str, name: str) -> None:
    """By its name before the beginning of another, in any case, by its id, by whom it is shared with."""
    assert find_space(SPACES, wanted, ME).name == name


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("kichen", "There is no space 'kichen'. Did you mean 'Kitchen'?"),
        ("gardn", "There is no space 'gardn'. Did you mean 'Kitchen garden'?"),
        (
            "xyzzy",
            "There is no space 'xyzzy'. You are in: Kitchen, Kitchen garden, Noor and Ada, Talks, Noor and Bo, ",
        ),
        ("Noor and", "'Noor and' may be any of these: Noor and Ada (id-Noor and Ada); Noor and Bo (id-Noor and Bo); "),
        ("@adda", "Nobody in your spaces is called @adda. Did you mean @ada?"),
        ("@cy", "You have no space of your own with @cy. You meet in: Kitchen garden."),
        ("cy", "You have no space of your own with @cy. You meet in: Kitchen garden."),
    ],
)
def test_what_is_not_found_is_said_with_what_comes_nearest(wanted: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        find_space(SPACES, wanted, ME)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("spaces", "told"),
    [
        ([kitchen("1", ADA), kitchen("2", BO, CY), kitchen("3")], ["@ada", "@bo, @cy", "only you"]),
        ([kitchen("1"), kitchen("2", at=DAY + timedelta(days=1))], ["created 2026-01-05", "created 2026-01-06"]),
        (
            [kitchen("1"), kitchen("2", at=DAY + timedelta(minutes=5))],
            ["created 2026-01-05 10:00:00 UTC", "created 2026-01-05 10:05:00 UTC"],
        ),
        ([kitchen("2"), kitchen("1")], ["2 of 2", "1 of 2"]),
        ([kitchen("1"), space("Garden")], []),
    ],
    ids=["members", "day", "time", "order", "none"],
)
def test_spaces_of_the_same_name_are_told_apart(spaces: list[Space], told: list[str]) -> None:
    assert list(namesakes(spaces, "n").values()) == told


def test_a_name_of_several_spaces_is_refused_with_what_tells_them_apart() -> None:
    """It was "Kitchen (1), Kitchen (2)", with ids that nobody knows."""
    with pytest.raises(InvalidInput, match=r"Kitchen \(@ada, 1\); Kitchen \(only you, 2\)\. Write more of"):
        find_space([kitchen("1", ADA), kitchen("2")], "Kitchen", ME)
