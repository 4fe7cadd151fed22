from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.errors import InvalidInput
from denizen.spaces.handles import check_handle, check_name, handle_from


@pytest.mark.parametrize(
    ("given_text", "handle"),
    [("ada", "ada"), ("  @Ada ", "ada"), ("Noor.Al-Amin_2", "noor.al-amin_2"), ("7", "7"), ("a" * 40, "a" * 40)],
)
def test_a_valid_handle_is_accepted_in_lower_case(given_text: str, handle: str):
    assert check_handle(given_text) == handle


@pytest.mark.parametrize(
    ("given_text", "sentence"),
    [
        (
            "noor!",
            "The handle 'noor!' contains '!'; letters a to z, digits, '-', '_' and '.' are allowed. Try 'noor'.",
        ),
        ("-ada", "The handle '-ada' starts with '-'; it must start and end with a letter or digit. Try 'ada'."),
        ("ada.", "The handle 'ada.' ends with '.'; it must start and end with a letter or digit. Try 'ada'."),
        ("a" * 41, f"The handle '{'a' * 39}…' has 41 characters; 40 are allowed. Try '{'a' * 40}'."),
        ("", "The handle '' is empty. Try 'member-36e9d246'."),
        (
            "José",
            "The handle 'José' contains 'é'; letters a to z, digits, '-', '_' and '.' are allowed. Try 'jose'.",
        ),
    ],
)
def test_an_invalid_handle_is_refused_with_the_nearest_valid_one(given_text: str, sentence: str):
    with pytest.raises(InvalidInput) as refused:
        check_handle(given_text)

    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("name", "handle"),
    [
        ("Ada", "ada"),
        ("Dr. Noor Al-Amin", "dr-noor-al-amin"),
        ("José Łukasz Straße", "jose-lukasz-strasse"),
        ("Miles O'Brien", "miles-obrien"),
        ("Ada 🤖 (beta)", "ada-beta"),
        ("node_2.eu", "node_2.eu"),
        ("…--Ada--…", "ada"),
        ("a" * 39 + " b", "a" * 39),
    ],
)
def test_a_name_becomes_a_handle_like_it(name: str, handle: str):
    assert handle_from(name) == handle


def test_a_name_in_another_script_gets_a_short_handle_that_stays_the_same():
    assert handle_from("حسام") == handle_from("حسام") == "member-c5623d34"
    assert handle_from("أحمد") != handle_from("حسام")


@given(st.text())
def test_every_handle_made_from_a_name_is_valid(name: str):
    handle = handle_from(name)

    assert check_handle(handle) == handle


@given(st.text(alphabet=st.sampled_from("aZ0._-@ é\n"), max_size=45))
def test_a_handle_is_either_accepted_or_refused_with_a_suggestion_that_is_accepted(text: str):
    try:
        handle = check_handle(text)
    except InvalidInput as refused:
        suggestion = str(refused).rsplit("Try '", 1)[1].removesuffix("'.")
        assert check_handle(suggestion) == suggestion
    else:
        assert check_handle(handle) == handle


def test_a_name_is_trimmed_and_otherwise_kept():
    assert check_name("  Noor (Sales) 🤖  ") == "Noor (Sales) 🤖"
    assert check_name("x" * 120) == "x" * 120


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("  \n ", "The name is empty. Give at least one character."),
        ("x" * 121, "The name has 121 characters. Shorten it to 120."),
        ("Ada\nNoor", "The name contains U+000A, a line break or control character. Remove it."),
        ("Ada\u2028Noor", "The name contains U+2028, a line break or control character. Remove it."),
        ("Ada\x1b[31m", "The name contains U+001B, a line break or control character. Remove it."),
        ("Ada\ud800", "The name contains U+D800, a line break or control character. Remove it."),
    ],
)
def test_a_name_that_is_not_one_visible_line_is_refused(name: str, sentence: str):
    with pytest.raises(InvalidInput) as refused:
        check_name(name)

    assert str(refused.value) == sentence
