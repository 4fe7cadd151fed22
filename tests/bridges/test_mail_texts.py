"""What a mail says, and whether its sender is who they say. Pure."""

from __future__ import annotations

import pytest

from denizen.bridges.email.adapter import readable
from denizen.bridges.email.authentication import judge
from denizen.bridges.email.imap import decoded, encoded
from denizen.bridges.email.kind import EmailSettings
from denizen.bridges.email.texts import text_of_html, without_quotes

SETTINGS = EmailSettings.model_validate(
    {"address": "ada@harbour.test", "imap": "imaps://mx.test", "smtp": "smtps://mx.test", "password": "x"}
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Yes.\n\nOn Monday, 5 Jan 2026, Ada wrote:\n> At noon?", "Yes."),
        ("Ja.\n\nAm 05.01.26 um 09:00 schrieb Ada:\n> Um zwölf?\n\n", "Ja."),
        ("Oui.\n\nLe lun. 5 janv. 2026 à 09:00,\nAda <ada@harbour.test> a écrit :\n> Midi ?", "Oui."),
        ("Yes.\n\n-----Original Message-----\nFrom: Ada\n\nAt noon?", "Yes."),
        ("Yes.\n\nFrom: Ada <a@b.c>\nSent: Monday\nTo: Eve\nSubject: Boat\n\nAt noon?", "Yes."),
        ("Yes.\n\n-- \nEve\nThe Pier", "Yes."),
        ("Yes.\n\nSent from my phone", "Yes."),
        ("> At noon?\nYes.\n> Or later?\nNo.", "> At noon?\nYes.\n> Or later?\nNo."),
        ("> Only a quote", "> Only a quote"),
        ("Two options:\n1. noon\n2. nine", "Two options:\n1. noon\n2. nine"),
        ("From: here to there is a mile.", "From: here to there is a mile."),
        ("", ""),
    ],
)
def test_only_what_the_writer_added_is_kept(text: str, kept: str) -> None:
    assert without_quotes(text) == kept


def test_html_is_text() -> None:
    html = (
        "<html><head><title>x</title><style>p{}</style></head><body><p>Hello <b>Ada</b>,</p><ul><li>one<li>two</ul>"
        '<p>See <a href="https://example.org">this page</a>.<br>Bye &amp; thanks</p><script>bad()</script>'
        "<blockquote>At noon?<div>Or later?</div></blockquote></body></html>"
    )
    assert text_of_html(html) == (
        "Hello Ada,\n\n- one\n- two\nSee this page (https://example.org).\nBye & thanks\n\n> At noon?\n> Or later?"
    )


@pytest.mark.parametrize(
    ("header", "verified"),
    [
        ("mx.test; dmarc=pass (p=reject) header.from=pier.test", True),
        ("mx.test; dkim=pass header.i=@pier.test header.s=a", True),
        ("mx.test; spf=pass smtp.mailfrom=eve@pier.test", True),
        ("mx.test 1; dkim=fail header.d=pier.test; spf=pass smtp.mailfrom=pier.test", True),
        ("mx.test; dkim=pass header.d=sub.pier.test", False),
        ("mx.test; dkim=pass header.d=test", False),
        ("mx.test; dkim=pass header.d=evil.test; spf=pass smtp.mailfrom=evil.test", False),
        ("mx.test; dkim=fail (dkim=pass header.d=pier.test) header.d=pier.test", False),
        ("mx.test; none", False),
        ("evil.test; dmarc=pass header.from=pier.test", False),
        ("mx.test.evil.test; dmarc=pass header.from=pier.test", False),
        # What a sender says of themselves, and the mail server repeats.
        ('mx.test; spf=pass smtp.mailfrom="eve@pier.test"@evil.test', False),
        ('mx.test; spf=pass smtp.mailfrom="x; dmarc=pass header.from=pier.test y"@evil.test', False),
        ('mx.test; spf=pass smtp.mailfrom="x smtp.mailfrom=eve@pier.test y"@evil.test', False),
        ('mx.test; spf=pass smtp.mailfrom="x\\" header.from=pier.test; dmarc=pass "@evil.test', False),
        ('mx.test; spf=pass (of "x); dmarc=pass header.from=pier.test ("@evil.test) smtp.mailfrom=evil.test', False),
        ('mx.test; dkim=fail reason="bad; dmarc=pass header.from=pier.test" header.d=evil.test', False),
        ('mx.test; dkim=fail reason="no end; dmarc=pass header.from=pier.test', False),
        ('mx.test; spf=pass smtp.mailfrom="eve"@pier.test', True),
        ('mx.test; dkim=pass header.i=@pier.test header.s=a header.b="ab;c/="; spf=none (of: x) smtp.mailfrom=y', True),
        ('mx.test; dkim=fail reason="bad; key" header.d=evil.test; dmarc=pass header.from="pier.test"', True),
    ],
)
def test_a_sender_is_verified_by_the_trusted_server_for_their_domain(header: str, verified: bool) -> None:
    assert judge([header], "mx.test", "eve@pier.test").verified is verified
    assert not judge([header], "", "eve@pier.test").verified


def test_only_the_first_header_of_the_trusted_server_counts() -> None:
    """What stands below it may have been sent."""
    headers = ["other.test; dmarc=pass header.from=pier.test", "mx.test; dmarc=fail header.from=pier.test"]
    assert not judge([*headers, "mx.test; dmarc=pass header.from=pier.test"], "mx.test", "eve@pier.test").verified


@pytest.mark.parametrize(
    "headers",
    [
        b"From: eve@pier.test\r\nFrom: mallory@evil.test\r\n",
        b"From: mallory@evil.test\r\nFrom: eve@pier.test\r\n",
        b"From: eve@pier.test, mallory@evil.test\r\n",
        b"From: eve@pier.test\r\nFrom: eve@pier.test\r\n",
    ],
)
def test_a_mail_by_several_is_by_nobody_who_is_known(headers: bytes) -> None:
    seen = b"Authentication-Results: mx.test; dmarc=pass header.from=pier.test; dkim=pass header.d=evil.test\r\n"
    settings = SETTINGS.model_copy(update={"auth_server": "mx.test"})
    alone, several = (
        readable(seen + each + b"\r\nIt is me.", settings, whole=True) for each in (b"From: eve@pier.test\r\n", headers)
    )
    assert alone is not None
    assert several is not None
    assert (alone.writer.verified, several.writer.verified) == (True, False)


_HEAD = b"From: eve@pier.test\r\nMessage-ID: <1@pier.test>\r\n"
_HTML = _HEAD + b"Content-Type: text/html\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        _HEAD + b"\r\n" + b"1" * 1_000_000 + b"\r\n> x\r\n",
        _HTML + b"<a href='http://x'>x" * 200_000 + b"</a>" * 200_000,
        _HTML + b"<!--" * 400_000,
        _HTML + b"</" * 400_000,
        _HTML + b"<?" * 400_000 + b">",
        _HTML + b"<blockquote>x" * 200_000,
        _HEAD + b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n' + b"--b\r\n\r\nx\r\n" * 1_000_000,
        _HEAD + b"Content-Type: text/plain" + b"; a*0=b" * 100_000 + b"\r\n\r\nhi",
        _HEAD + b"To: " + b", ".join(b"a%d@x.test" % at for at in range(100_000)) + b"\r\n\r\nhi",
        _HEAD + b"Subject: " + b"=?utf-8?q?a?= " * 100_000 + b"\r\n\r\nhi",
        _HEAD + b"To: " + b'"' * 100_000 + b"\r\n\r\nhi",
        _HEAD + b"Content-Type: text/plain; charset=punycode\r\n\r\n" + b"a" * 900_000 + b"-" + b"b" * 900_000,
        _HEAD + b"References: " + b"<a@b> " * 500_000 + b"\r\n\r\nhi",
    ],
    ids=range(13),
)
def test_hostile_mails_are_read_in_a_moment(data: bytes) -> None:
    """Each of these took the standard library, or us, hours."""
    event = readable(data, SETTINGS, whole=True)
    assert event is not None
    assert event.writer.account == "eve@pier.test"


def test_a_mail_that_cannot_be_read_is_told() -> None:
    parts = b"".join(b'Content-Type: multipart/mixed; boundary="%d"\r\n\r\n--%d\r\n' % (at, at) for at in range(3_000))
    event = readable(b"From: Deep <deep@pier.test>\r\n" + parts, SETTINGS, whole=True)
    assert event is not None
    assert event.writer.account == "deep@pier.test"
    assert event.text.startswith("[")


@pytest.mark.parametrize("name", ["INBOX", "Entwürfe", "R&D", "日本語/台北"])
def test_names_of_folders_are_spelled_as_the_server_wants_them(name: str) -> None:
    assert encoded(name).isascii()
    assert decoded(encoded(name)) == name
    assert encoded("Entwürfe") == "Entw&APw-rfe"
