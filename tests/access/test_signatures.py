"""Signatures of webhooks: as the services themselves make them, and nothing that only looks like them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from denizen.access.signatures import (
    PATIENCE_SECONDS,
    SCHEMES,
    Scheme,
    generic_signature,
    github_signature,
    slack_signature,
    verify,
)
from denizen.errors import SignatureExpired, SignatureWrong

NOW = 1_531_420_618
Headers = dict[str, str]

SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)

SIGN: dict[Scheme, Callable[[str, int, bytes], Headers]] = {
    "github": lambda secret, _, body: {"x-hub-signature-256": github_signature(secret, body)},
    "jira": lambda secret, _, body: {"x-hub-signature": github_signature(secret, body)},
    "slack": lambda secret, time, body: {
        "x-slack-signature": slack_signature(secret, str(time), body),
        "x-slack-request-timestamp": str(time),
    },
    "generic": lambda secret, time, body: {"denizen-signature": generic_signature(secret, time, body)},
}
TIMED: list[Scheme] = ["slack", "generic"]

schemes = st.sampled_from(SCHEMES)
secrets = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=80)
bodies = st.binary(max_size=200)
times = st.integers(min_value=NOW - PATIENCE_SECONDS, max_value=NOW + PATIENCE_SECONDS)


def test_github_signs_as_its_documentation_says() -> None:
    """The example of "Validating webhook deliveries"."""
    headers = {"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}
    assert verify("github", "It's a Secret to Everybody", headers, b"Hello, World!", NOW) == b"Hello, World!"


def test_slack_signs_as_its_documentation_says() -> None:
    """The example of "Verifying requests from Slack"."""
    headers = {
        "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        "x-slack-request-timestamp": "1531420618",
    }
    assert verify("slack", "8f742231b10e8888abcd99yyyzzz85a5", headers, SLACK_BODY, NOW) == SLACK_BODY


def test_jira_names_its_method_and_only_one_is_accepted() -> None:
    """HMAC-SHA256, as `openssl dgst -sha256 -hmac` makes it. SHA-1 is refused even where it is right."""
    headers = {"x-hub-signature": "sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9"}
    assert verify("jira", "It's a Secret to Everybody", headers, b"Hello World!", NOW) == b"Hello World!"
    sha1 = {"x-hub-signature": "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59"}
    with pytest.raises(SignatureWrong):
        verify("jira", "It's a Secret to Everybody", sha1, b"Hello, World!", NOW)


def test_our_own_signature_is_as_the_page_says() -> None:
    """HMAC-SHA256 over "{t}.{body}", as `openssl dgst -sha256 -hmac` makes it."""
    expected = "t=1531420618,v1=5006992f3ae633fc00c8fb80ee1e2b4c696da463b5930254023542cb34afe332"
    assert generic_signature("It's a Secret to Everybody", NOW, b"Hello, World!") == expected


@given(schemes, secrets, times, bodies)
def test_what_was_signed_is_believed(scheme: Scheme, secret: str, time: int, body: bytes) -> None:
    verify(scheme, secret, SIGN[scheme](secret, time, body), body, NOW)


@given(schemes, secrets, times, st.binary(min_size=1, max_size=200), st.data())
def test_no_bit_of_the_body_may_change(
    scheme: Scheme, secret: str, time: int, body: bytes, data: st.DataObject
) -> None:
    headers = SIGN[scheme](secret, time, body)
    with pytest.raises(SignatureWrong):
        verify(scheme, secret, headers, flipped(body, data), NOW)


@given(schemes, secrets, times, bodies, st.data())
def test_no_bit_of_the_headers_may_change(
    scheme: Scheme, secret: str, time: int, body: bytes, data: st.DataObject
) -> None:
    """Neither of the signature nor of the time that it holds."""
    headers = SIGN[scheme](secret, time, body)
    name = data.draw(st.sampled_from(sorted(headers)))
    headers[name] = flipped(headers[name].encode(), data).decode("latin-1")
    with pytest.raises(SignatureWrong):
        verify(scheme, secret, headers, body, NOW)


@given(schemes, secrets, secrets, times, bodies)
def test_another_secret_is_not_believed(scheme: Scheme, secret: str, other: str, time: int, body: bytes) -> None:
    assume(secret != other)
    with pytest.raises(SignatureWrong):
        verify(scheme, secret, SIGN[scheme](other, time, body), body, NOW)


@given(schemes, secrets, bodies, st.sets(st.sampled_from(SCHEMES)))
def test_another_schemes_signature_is_not_believed(scheme: Scheme, secret: str, body: bytes, used: set[Scheme]) -> None:
    headers = {name: value for each in used - {scheme} for name, value in SIGN[each](secret, NOW, body).items()}
    with pytest.raises(SignatureWrong):
        verify(scheme, secret, headers, body, NOW)


@pytest.mark.parametrize("scheme", TIMED)
@pytest.mark.parametrize("side", [-1, 1])
def test_a_signature_is_believed_for_five_minutes(scheme: Scheme, side: int) -> None:
    """Before and after: clocks differ. That it is too old is told only of what was signed rightly."""
    headers = SIGN[scheme]("secret", NOW, b"body")
    verify(scheme, "secret", headers, b"body", NOW + side * PATIENCE_SECONDS)
    with pytest.raises(SignatureExpired):
        verify(scheme, "secret", headers, b"body", NOW + side * (PATIENCE_SECONDS + 0.001))
    with pytest.raises(SignatureWrong) as refused:
        verify(scheme, "other", headers, b"body", NOW + side * 2 * PATIENCE_SECONDS)
    assert not isinstance(refused.value, SignatureExpired)


@pytest.mark.parametrize(
    "time", ["", " ", "now", "-1", "+1", "1e9", "１５３１４２０６１８", f"{NOW} ", f"0x{NOW:x}", "9" * 13]
)
def test_a_time_that_is_no_number_is_not_believed_even_if_signed(time: str) -> None:
    headers = {"x-slack-signature": slack_signature("secret", time, b""), "x-slack-request-timestamp": time}
    with pytest.raises(SignatureWrong):
        verify("slack", "secret", headers, b"", NOW)


def test_the_end_of_the_time_cannot_be_taken_for_the_body() -> None:
    """`1531420618.1.body` is the time and `1.body`, never another time and `body`."""
    signature = generic_signature("secret", NOW, b"1.body").partition("v1=")[2]
    with pytest.raises(SignatureWrong):
        verify("generic", "secret", {"denizen-signature": f"t={NOW}.1,v1={signature}"}, b"body", NOW)


def test_while_a_sender_changes_its_secret_it_may_sign_with_both() -> None:
    old, new = (generic_signature(each, NOW, b"body").partition("v1=")[2] for each in ("old", "new"))
    both = {"denizen-signature": f"t={NOW}, v1={old}, v1={new}, v0=else"}
    for secret in ("old", "new"):
        assert verify("generic", secret, both, b"body", NOW) == b"%d.body" % NOW
    for header in (f"v1={old}", f"t={NOW}", f"t={NOW},t={NOW},v1={old}", f"t={NOW},v0={old}", "", "=,="):
        with pytest.raises(SignatureWrong):
            verify("generic", "old", {"denizen-signature": header}, b"body", NOW)


def test_what_slack_sends_again_is_the_same_although_it_signs_anew() -> None:
    first, second = (verify("slack", "s", SIGN["slack"]("s", NOW + wait, b"body"), b"body", NOW) for wait in (0, 60))
    assert first == second
    first, second = (
        verify("generic", "s", SIGN["generic"]("s", NOW + wait, b"body"), b"body", NOW) for wait in (0, 60)
    )
    assert first != second


def flipped(content: bytes, data: st.DataObject) -> bytes:
    """The content with one bit changed."""
    bit = data.draw(st.integers(min_value=0, max_value=8 * len(content) - 1))
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
