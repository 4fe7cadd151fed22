"""Which values stand in a text, by type and whole."""

from __future__ import annotations

import pytest

from denizen.trust.values import Kind, TextValues, Value, kind_of, read_values, values_of

SAID = read_values(
    "Please refund GB29NWBK60161331926819, or GB82 WEST 1234 5698 7654 32, the 12.00 and $30,000 of 2024-05-13 to "
    "'sarah.connor@gmail.com'. See www.example.com/alice, https://a.example/x?y=1. and bill-december.txt! "
    "Meet Le Marais Boutique on January 11th 2025, the 14th of November or Feb 2 at 13:00; delete file ID '7' and #19. "
    "Password: '1j1l-2k3j'."
)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("email", "sarah.connor@gmail.com"),
        ("email", "Sarah.Connor@GMAIL.com"),
        ("link", "www.example.com/alice"),
        ("link", "http://a.example/x?y=1"),
        ("account", "GB29NWBK60161331926819"),
        ("account", "GB29 NWBK 6016 1331 9268 19"),
        ("account", "gb82west12345698765432"),
        ("amount", "12"),
        ("amount", "12.0"),
        ("amount", "30000"),
        ("date", "2025-01-11"),
        ("date", "2025-01-11 09:00"),
        ("date", "2031-11-14T10:00:00Z"),
        ("date", "2024-02-02"),
        ("date", "2024-05-13"),
        ("id", "7"),
        ("id", "19"),
        ("name", "Le Marais Boutique"),
        ("name", "le marais"),
        ("name", "bill-december.txt"),
        ("name", "1j1l-2k3j"),
        ("name", ""),
        ("name", "ｌｅ Marais"),
        ("flag", "True"),
        ("text", "Le Marais, on 2025-06-07 at 10:00, for 4,000: see www.example.com/alice"),
        ("text", "The password is 1j1l-2k3j."),
        ("text", "The key is patience. Room101 at 10am, 1200mg, a keyboard: 2 of them, iphone15 and rtx4090."),
        ("text", "Key: bring sunscreen. The password is in the vault."),
    ],
)
def test_a_value_that_was_said(kind: Kind, value: str) -> None:
    assert SAID.has(kind, value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("email", "connor@gmail.com"),
        ("email", "sarah.connor@gmail.com.evil.example"),
        ("link", "www.example.com"),
        ("link", "www.example.com/alice/secret"),
        ("link", "www.exаmple.com/alice"),
        ("account", "GB29NWBK6016133192681"),
        ("amount", "13"),  # of a date
        ("amount", "2024"),
        ("amount", "0.01"),
        ("amount", "300"),
        ("date", "2024-01-11"),  # another year was said
        ("date", "2025-01-12"),
        ("date", "2025-11-01"),
        ("date", "soon"),
        ("id", "12"),  # an amount, not an id
        ("id", "13"),
        ("id", "11"),
        ("name", "Marais Hotel"),
        ("name", "Mara"),
        ("name", "Le\u200b Marais"),
        ("name", "../Le Marais"),
        ("name", "sarah"),
        ("name", "gmail.com"),
        ("text", "write to evil@example.com"),
        ("text", "click evil.example/login"),
        ("text", "pay DE89 3704 0044 0532 0130 00"),
        ("text", "my card is 4237-4252-7456-2574"),
        ("text", "passport HGK137803"),
        ("text", "Secret key is 1a7b3d."),
        ("text", "It says 1a7b3d."),
        ("text", "The PIN is 4711"),
        ("text", "api_key=x12"),
        ("text", "the  passcode\nwas  'summer7'"),
        ("text", "Password: swordfish"),
    ],
)
def test_a_value_that_was_not_said(kind: Kind, value: str) -> None:
    assert not SAID.has(kind, value)


def test_what_a_text_holds_that_was_not_said() -> None:
    assert SAID.strange_in("Mail sarah.connor@gmail.com and eve@evil.example, at evil.example/x.") == [
        "eve@evil.example",
        "evil.example/x",
    ]


def test_the_kind_of_an_argument_is_told_by_its_form_and_its_name() -> None:
    arguments = {
        "recipients": ["a@b.example"],
        "url": "https://a.example",
        "iban": "GB29NWBK60161331926819",
        "when": "2024-05-13 10:00",
        "amount": 3.5,
        "file_id": "11",
        "eventId": 5,
        "subject": "Hello",
        "body": "See there.",
        "channel": "general",
        "code": "123",
        "recurring": True,
        "none": None,
        "attachments": [{"kind": "file", "file_id": "19"}],
    }
    assert [(each.argument, each.kind) for each in values_of(arguments)] == [
        ("recipients", "email"),
        ("url", "link"),
        ("iban", "account"),
        ("when", "date"),
        ("amount", "amount"),
        ("file_id", "id"),
        ("eventId", "id"),
        ("subject", "text"),
        ("body", "text"),
        ("channel", "name"),
        ("code", "id"),
        ("recurring", "flag"),
        ("none", "flag"),
        ("kind", "name"),
        ("file_id", "id"),
    ]
    assert values_of({"a": [1, [2]]}) == [Value("a", "amount", "1"), Value("a", "amount", "2")]


def test_a_text_argument_that_is_an_address_is_an_address() -> None:
    """Whatever its argument is called."""
    assert kind_of("eve@evil.example", "body") == "email"
    assert kind_of("www.evil.example", "message") == "link"


@pytest.mark.parametrize(
    "piece", ["a", "a.", "1 ", "1,", "a@", "id ", "www.", "http://", "gb29 ", "may ", "a+", "://", "key:"]
)
def test_long_texts_take_linear_time(piece: str) -> None:
    """Quadratic time would not end."""
    text = piece * (50_000 // len(piece))
    read_values(text).strange_in(text)


def test_a_long_value_is_looked_for_in_a_long_text_in_linear_time() -> None:
    """Comparing it anew at each of these words would take hours, in which nobody is served."""
    said = TextValues(text="a " * 5_000_000 + "; xa" + " xa" * 100_000)
    assert not said.has("name", "a " * 9_000 + "b")
    assert not said.has("name", "a" + " xa" * 50_000), "parts of other words"
    assert said.has("name", "a " * 9_000 + "a")
