"""Who sent this: signatures of webhooks, as GitHub, Slack, Jira and Denizen make them. Pure: values in, values out.

All of them are HMAC-SHA256 over the raw body, with a secret that only the sender and we have. Slack's and our own hold
the time as well. Nothing else is signed: what the other headers say is a hint, and no more.
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
"""How far the time of a signature may be from ours, to either side."""

_TIME = re.compile(r"[0-9]{1,12}")


def verify(scheme: Scheme, secret: str, headers: Mapping[str, str], body: bytes, now_seconds: float) -> bytes:
    """What makes this request the one it is, if it was signed with the secret. The names of headers are lower case.

    Two requests with the same bytes here are one event: whoever repeats what they overheard cannot change them. That is
    the body; for `generic` the time besides. Raises `SignatureWrong`, and `SignatureExpired` where only the time is.
    """
    match scheme:
        case "github":
            _check(github_signature(secret, body), headers.get(GITHUB_HEADER, ""))
            return body
        case "jira":
            # The header names its method. Others than this one are weaker, so they are refused.
            _check(github_signature(secret, body), headers.get(JIRA_HEADER, ""))
            return body
        case "slack":
            time = headers.get(SLACK_TIME_HEADER, "")
            _check(slack_signature(secret, time, body), headers.get(SLACK_HEADER, ""))
            _check_time(time, now_seconds)
            # Not the time: Slack signs anew when it sends again, and its bodies hold an id of their own.
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
    # All of them, each to its end: how long it takes says nothing about how much of a guess was right.
    matches = [hmac.compare_digest(_bytes(expected), _bytes(each)) for each in given]
    if not any(matches):
        raise SignatureWrong


def _check_time(time: str, now_seconds: float) -> None:
    # Digits only: so it is certain where, in what was signed, the time ends and the body begins.
    if _TIME.fullmatch(time) is None:
        raise SignatureWrong
    if abs(now_seconds - int(time)) > PATIENCE_SECONDS:
        raise SignatureExpired


def _hmac(secret: str, signed: bytes) -> str:
    return hmac.new(_bytes(secret), signed, hashlib.sha256).hexdigest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
