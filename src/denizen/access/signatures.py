"""Verifies and makes webhook signatures of GitHub, Slack, Jira and Denizen. Pure: values in, values out.

All of them are HMAC-SHA256 over the raw body, with a secret that only the sender and we have. Slack's and our own
include the time as well. Nothing else is signed: other headers are only hints.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final, get_args

from denizen.errors import SignatureExpired, SignatureWrong
from denizen.shapes.vocabulary import WebhookScheme as Scheme

SCHEMES: Final[tuple[Scheme, ...]] = get_args(Scheme)

GITHUB_HEADER: Final = "x-hub-signature-256"
JIRA_HEADER: Final = "x-hub-signature"
SLACK_HEADER: Final = "x-slack-signature"
SLACK_TIME_HEADER: Final = "x-slack-request-timestamp"
GENERIC_HEADER: Final = "denizen-signature"

PATIENCE_SECONDS: Final = 300
"""How far the time of a signature may be from ours, in either direction."""

_TIME = re.compile(r"[0-9]{1,12}")


def verify(scheme: Scheme, secret: str, headers: Mapping[str, str], body: bytes, now_seconds: float) -> bytes:
    """The bytes that identify this request, if it was signed with the secret. The names of headers are lower case.

    Two requests with the same bytes here are one event: somebody who replays a request cannot change them. They are the
    body; for `generic` also the time. Raises `SignatureWrong`, and `SignatureExpired` if only the time is wrong.
    """
    match scheme:
        case "github":
            _check(github_signature(secret, body), headers.get(GITHUB_HEADER, ""))
            return body
        case "jira":
            # The header names its method. All others are weaker, so they are refused.
            _check(github_signature(secret, body), headers.get(JIRA_HEADER, ""))
            return body
        case "slack":
            time = headers.get(SLACK_TIME_HEADER, "")
            _check(slack_signature(secret, time, body), headers.get(SLACK_HEADER, ""))
            _check_time(time, now_seconds)
            # Without the time: Slack signs again when it resends, and its bodies hold an id of their own.
            return body
        case "generic":
            time, signatures = _generic_parts(headers.get(GENERIC_HEADER, ""))
            _check(_hmac(secret, _timed(time, body)), *signatures)
            _check_time(time, now_seconds)
            return _timed(time, body)


def github_signature(secret: str, body: bytes) -> str:
    """The value of `X-Hub-Signature-256`; Jira's `X-Hub-Signature` is made in the same way."""
    return f"sha256={_hmac(secret, body)}"


def slack_signature(secret: str, time: str, body: bytes) -> str:
    """The value of `X-Slack-Signature`."""
    return f"v0={_hmac(secret, b'v0:%b:%b' % (_bytes(time), body))}"


def generic_signature(secret: str, time: int, body: bytes) -> str:
    """The value of `Denizen-Signature`: `t=<unix time>,v1=<HMAC-SHA256 of "{t}.{body}", in hexadecimal digits>`."""
    return f"t={time},v1={_hmac(secret, _timed(str(time), body))}"


def _generic_parts(header: str) -> tuple[str, list[str]]:
    """The time and the signatures; there may be several, while a sender changes its secret."""
    parts = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in parts if name == "t"]
    if len(times) != 1:
        return "", []
    return times[0], [value for name, _, value in parts if name == "v1"]


def _timed(time: str, body: bytes) -> bytes:
    return b"%b.%b" % (_bytes(time), body)


def _check(expected: str, *given: str) -> None:
    # Compare all of them completely, so that the time it takes reveals nothing about a guess.
    matches = [hmac.compare_digest(_bytes(expected), _bytes(each)) for each in given]
    if not any(matches):
        raise SignatureWrong


def _check_time(time: str, now_seconds: float) -> None:
    # Digits only: so it is certain where the time ends and the body begins in the signed text.
    if _TIME.fullmatch(time) is None:
        raise SignatureWrong
    if abs(now_seconds - int(time)) > PATIENCE_SECONDS:
        raise SignatureExpired


def _hmac(secret: str, signed: bytes) -> str:
    return hmac.new(_bytes(secret), signed, hashlib.sha256).hexdigest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
