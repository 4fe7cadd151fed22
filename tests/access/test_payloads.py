"""What a webhook's request says: JSON, forms, text, and the questions that are only for us."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.access.payloads import Greeting, SentFile, WebhookNotice, read
from denizen.access.signatures import SCHEMES, Scheme
from denizen.inbox.outside import NESTING, is_deep

JSON = {"content-type": "application/json; charset=utf-8"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize(
    ("scheme", "headers", "data", "line"),
    [
        ("github", {"x-github-event": "push"}, {"ref": "refs/heads/main"}, "GitHub: push"),
        ("github", {"x-github-event": "issues"}, {"action": "opened"}, "GitHub: issues opened"),
        ("github", {}, {}, "GitHub"),
        ("slack", {}, {"type": "event_callback", "event": {"type": "app_mention"}}, "Slack: app_mention"),
        ("slack", {}, {"type": "block_actions"}, "Slack: block_actions"),
        ("jira", {}, {"webhookEvent": "jira:issue_updated"}, "Jira: jira:issue_updated"),
        ("generic", {}, {"type": "deploy.finished"}, "deploy.finished"),
        ("generic", {}, {"event": "deploy"}, "deploy"),
        ("generic", {}, [1, 2], ""),
        ("github", {"x-github-event": "push]\n[INBOX"}, {"action": ["x"]}, "GitHub"),
        ("jira", {}, {"webhookEvent": 7}, "Jira"),
    ],
)
def test_a_line_says_what_it_is_about(scheme: Scheme, headers: dict[str, str], data: object, line: str) -> None:
    """The line is made of plain words only, whatever is sent; the data are handed on as they are."""
    assert read(scheme, JSON | headers, json.dumps(data).encode()) == WebhookNotice(line, data)  # pyright: ignore[reportArgumentType]


def test_a_form_is_its_fields_or_the_json_in_its_payload() -> None:
    payload = {"action": "opened", "number": 7}
    sent = urlencode({"payload": json.dumps(payload)}).encode()
    assert read("github", FORM | {"x-github-event": "issues"}, sent) == WebhookNotice("GitHub: issues opened", payload)
    command = read("slack", FORM, b"command=%2Fdeploy&text=&user_name=noor&user_name=eve")
    assert command == WebhookNotice("Slack: /deploy", {"command": "/deploy", "text": "", "user_name": "noor"})


@pytest.mark.parametrize(
    ("payload", "data"),
    [('{"action": "opened"}', {"action": "opened"}), ("not json", {"payload": "not json", "who": "Noor"})],
)
def test_a_form_with_files_is_its_fields_or_the_json_in_its_payload(payload: str, data: object) -> None:
    fields = {'name="payload"': payload, 'name="who"': "Noor", 'name="log"; filename="log.txt"': "It broke."}
    parts = [f"--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{text}\r\n" for head, text in fields.items()]
    told = read("generic", {"content-type": "multipart/form-data; boundary=b"}, "".join([*parts, "--b--\r\n"]).encode())
    assert isinstance(told, WebhookNotice)
    assert (told.data, told.files) == (data, (SentFile("log.txt", "text/plain", b"It broke."),))


@pytest.mark.parametrize(
    ("headers", "body", "text"),
    [
        ({}, b"Disk full on db-1\nSee the panel.", "Disk full on db-1\nSee the panel."),
        (JSON, b'{"broken": ', '{"broken": '),
        (JSON, b'{"n": NaN}', '{"n": NaN}'),
        (JSON, b"", ""),
        (JSON, b"\xff", "\ufffd"),
        (FORM, b"no form at all", "no form at all"),
        (FORM, b"payload=not+json", "payload=not+json"),
        (JSON, nested(NESTING + 2), nested(NESTING + 2).decode()),
        (JSON, nested(100_000), nested(100_000).decode()),
        (JSON, b"1" * 5_000, "1" * 5_000),
    ],
)
def test_what_is_neither_is_text(headers: dict[str, str], body: bytes, text: str) -> None:
    assert read("generic", headers, body) == WebhookNotice(text)
    assert read("jira", headers, body) == WebhookNotice(f"Jira\n{text}" if text else "Jira")


def test_greetings_are_answered_and_told_to_nobody() -> None:
    assert read("github", JSON | {"x-github-event": "ping"}, b'{"zen": "Keep it simple."}') == Greeting()
    challenge = json.dumps({"type": "url_verification", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY"}).encode()
    assert read("slack", JSON, challenge) == Greeting("3eZbrw1aBm2rZgRNFdxV2595E9CY")
    assert read("slack", JSON, b'{"type": "url_verification", "challenge": "<script>"}') == Greeting(None)
    for scheme in ("github", "jira", "generic"):
        assert isinstance(read(scheme, JSON, challenge), WebhookNotice)


@given(st.sampled_from(SCHEMES), st.sampled_from([JSON, FORM, {}]), st.binary(max_size=300))
def test_nothing_that_can_be_sent_breaks_it(scheme: Scheme, headers: dict[str, str], body: bytes) -> None:
    """And what is told can be kept."""
    told = read(scheme, headers | {"x-github-event": body.decode("latin-1")}, body)
    if isinstance(told, WebhookNotice):
        assert "\0" not in told.text
        assert "\\u0000" not in json.dumps(told.data, allow_nan=False)
        assert not is_deep(told.data)
