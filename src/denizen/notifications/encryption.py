"""The encryption of a push message for one browser (RFC 8291), and the server's signature for push services (RFC 8292).

Pure, except for fresh keys and salts: a push service carries what it cannot read.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from denizen.clock import SECOND, Instant
from denizen.errors import InvalidInput

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

POINT_BYTES: Final = 65
"""The length of an uncompressed point of the curve P-256."""
AUTH_BYTES: Final = 16
SIGNED_SECONDS: Final = 12 * 3600
"""How long a signature is valid; push services accept at most a day."""
_RECORD_BYTES: Final = 4096
_LAST_RECORD: Final = b"\x02"


@dataclass(frozen=True, slots=True)
class BrowserKeys:
    """The keys that a browser has made for one subscription."""

    public: bytes
    """A point of P-256, uncompressed."""
    auth: bytes

    @classmethod
    def read(cls, p256dh: str, auth: str) -> BrowserKeys:
        """The keys as browsers write them. Raises `InvalidInput` if they are not such keys."""
        try:
            keys = cls(from_base64url(p256dh), from_base64url(auth))
            _public_key(keys.public)
        except (binascii.Error, ValueError) as error:
            raise InvalidInput("keys: p256dh is not a public key of P-256. Send those of the subscription.") from error
        if len(keys.auth) != AUTH_BYTES:
            raise InvalidInput(f"keys: auth has to be {AUTH_BYTES} bytes in URL-safe Base64.")
        return keys


def encrypt(text: bytes, keys: BrowserKeys) -> bytes:
    """The body of a push message in the content encoding `aes128gcm`, which only this browser can decrypt."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    own = ec.generate_private_key(ec.SECP256R1())
    own_point = _point(own.public_key())
    shared = own.exchange(ec.ECDH(), _public_key(keys.public))
    secret = _hkdf(shared, keys.auth, b"WebPush: info\0" + keys.public + own_point, 32)
    salt = os.urandom(16)
    key = _hkdf(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _hkdf(secret, salt, b"Content-Encoding: nonce\0", 12)
    header = salt + _RECORD_BYTES.to_bytes(4, "big") + bytes([POINT_BYTES]) + own_point
    return header + AESGCM(key).encrypt(nonce, text + _LAST_RECORD, None)


class ServerKey:
    """The key with which this server signs its requests to push services. Browsers know its public half."""

    def __init__(self, private: EllipticCurvePrivateKey) -> None:
        self._private = private
        self.public = to_base64url(_point(private.public_key()))
        """As browsers and push services take it."""

    @classmethod
    def generate(cls) -> ServerKey:
        from cryptography.hazmat.primitives.asymmetric import ec

        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def read(cls, text: str) -> ServerKey:
        """The key that `text` was written from."""
        from cryptography.hazmat.primitives.asymmetric import ec

        return cls(ec.derive_private_key(int.from_bytes(from_base64url(text), "big"), ec.SECP256R1()))

    def text(self) -> str:
        """The private key, to be sealed and stored."""
        return to_base64url(self._private.private_numbers().private_value.to_bytes(32, "big"))

    def authorization(self, endpoint: str, contact: str, now: Instant) -> str:
        """The header `Authorization` of a request to this endpoint."""
        parts = urlsplit(endpoint)
        claims = {
            "aud": f"{parts.scheme}://{parts.netloc}",
            "exp": now // SECOND + SIGNED_SECONDS,
            "sub": contact,
        }
        signed = f"{_json({'typ': 'JWT', 'alg': 'ES256'})}.{_json(claims)}"
        return f"vapid t={signed}.{to_base64url(self._signature(signed.encode()))}, k={self.public}"

    def _signature(self, text: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        r, s = decode_dss_signature(self._private.sign(text, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def __repr__(self) -> str:
        return "ServerKey()"


def to_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64url(text: str) -> bytes:
    """Raises `ValueError` if it is not URL-safe Base64; padding is optional."""
    bare = text.rstrip("=")
    return base64.b64decode(bare + "=" * (-len(bare) % 4), altchars=b"-_", validate=True)


def _json(value: dict[str, str] | dict[str, str | int]) -> str:
    return to_base64url(json.dumps(value, separators=(",", ":")).encode())


def _public_key(point: bytes) -> EllipticCurvePublicKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)


def _point(key: EllipticCurvePublicKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _hkdf(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)
