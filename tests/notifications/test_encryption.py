"""Push messages as browsers and push services expect them."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from hypothesis import given
from hypothesis import strategies as st

from denizen.clock import SECOND, Instant
from denizen.errors import InvalidInput
from denizen.notifications.encryption import BrowserKeys, ServerKey, encrypt, from_base64url
from tests.notifications.push_service import Browser


@given(st.text(max_size=900))
def test_a_browser_decrypts_what_is_sent_to_it(text: str) -> None:
    browser = Browser()
    keys = BrowserKeys.read(browser.keys["p256dh"], browser.keys["auth"])
    assert browser.read(encrypt(json.dumps(text).encode(), keys)) == text


def test_the_same_text_is_never_encrypted_to_the_same_bytes() -> None:
    browser = Browser()
    keys = BrowserKeys.read(browser.keys["p256dh"], browser.keys["auth"])
    assert encrypt(b'"tea"', keys) != encrypt(b'"tea"', keys)


def test_a_push_service_can_verify_who_sends() -> None:
    key = ServerKey.generate()
    header = key.authorization("https://push.example:8443/send/x?y", "https://denizen.example", Instant(1000 * SECOND))
    scheme, token, known = header.replace(",", "").split()
    assert (scheme, known) == ("vapid", f"k={key.public}")
    head, claims, signature = token.removeprefix("t=").split(".")
    assert json.loads(from_base64url(head)) == {"typ": "JWT", "alg": "ES256"}
    assert json.loads(from_base64url(claims)) == {
        "aud": "https://push.example:8443",
        "exp": 1000 + 12 * 3600,
        "sub": "https://denizen.example",
    }
    raw = from_base64url(signature)
    der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), from_base64url(key.public))
    public.verify(der, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))


def test_a_stored_key_is_the_same_key() -> None:
    key = ServerKey.generate()
    assert ServerKey.read(key.text()).public == key.public
    assert key.text() not in repr(key)


GOOD = Browser().keys


@pytest.mark.parametrize(
    ("p256dh", "auth"),
    [
        ("", GOOD["auth"]),
        ("not base64!", GOOD["auth"]),
        (base64.urlsafe_b64encode(b"\x04" + bytes(64)).decode(), GOOD["auth"]),  # not on the curve
        (GOOD["p256dh"], ""),
        (GOOD["p256dh"], "c2hvcnQ"),
    ],
    ids=["no key", "not base64", "not on the curve", "no secret", "a short secret"],
)
def test_keys_that_nothing_can_be_encrypted_for_are_refused(p256dh: str, auth: str) -> None:
    with pytest.raises(InvalidInput, match="keys: "):
        BrowserKeys.read(p256dh, auth)
