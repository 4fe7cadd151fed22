"""Encrypts secrets, so that a stolen database does not reveal them. The keys are elsewhere: in the environment or a
file.

There may be several keys, newest first: the first encrypts, each of them decrypts. A sealed text opens only for the
purpose it was sealed for, so that a row copied to another place is useless there.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import uuid4

from denizen.errors import SecretKeyMissing, SecretUnreadable, SettingsError

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

KEY_BYTES: Final = 32
KEY_FILE: Final = "secret.key"
"""In the home folder: the keys that were generated because none was given, one a line, newest first."""
VARIABLE: Final = "DENIZEN_SECRET_KEY"

Keys: TypeAlias = Callable[[bool], Sequence[str]]
"""Returns the current keys; with True, generates one if there is none."""

_WHAT_TO_SET: Final = (
    f"Give one as {VARIABLE} or, in Python, as Runtime(secret_key=...); `denizen secrets key` makes one. "
    "Keep it: without it, the secrets cannot be decrypted."
)


class Vault:
    """Encrypts and decrypts texts. `shared` are the secrets that the operator shares with every organization."""

    def __init__(self, keys: Keys, shared: Mapping[str, str] = MappingProxyType({})) -> None:
        self._keys = keys
        self.shared = shared

    def seal(self, text: str, purpose: str) -> str:
        """The encrypted text. May generate the first key, so not on the event loop."""
        keys = self._keys(True)
        if not keys:
            raise SecretKeyMissing(f"There is no key to encrypt secrets with. {_WHAT_TO_SET}")
        return _locks(keys).encrypt(json.dumps([purpose, text]).encode()).decode()

    def open(self, sealed: str, purpose: str) -> str:
        """The text that was sealed for that purpose. Raises `SecretUnreadable` if no key decrypts it."""
        keys = self._keys(False)
        if not keys:
            raise SecretUnreadable(
                "A secret is stored here, but its encryption key is missing. Set it again as "
                f"{VARIABLE} or, in Python, as Runtime(secret_key=...)."
            )
        from cryptography.fernet import InvalidToken

        try:
            sealed_for, text = json.loads(_locks(keys).decrypt(sealed))
        except (InvalidToken, ValueError) as error:
            raise SecretUnreadable from error
        if sealed_for != purpose:
            raise SecretUnreadable("An encrypted secret does not belong to its entry. Set it again.")
        return text

    def sign(self, text: str, purpose: str) -> str:
        """A signature that only a holder of the key can make. May generate the first key, like `seal`."""
        keys = self._keys(True)
        if not keys:
            raise SecretKeyMissing(f"There is no key to sign with. {_WHAT_TO_SET}")
        return _signature(keys[0], text, purpose)

    def signed(self, text: str, purpose: str, signature: str) -> bool:
        """Whether it was signed here, with any of the current keys."""
        given = signature.encode("utf-8", "surrogatepass")  # `compare_digest` takes texts only if they are ASCII
        return any(hmac.compare_digest(_signature(key, text, purpose).encode(), given) for key in self._keys(False))

    def __repr__(self) -> str:
        return "Vault()"


def _signature(key: str, text: str, purpose: str) -> str:
    return hmac.new(base64.urlsafe_b64decode(key), json.dumps([purpose, text]).encode(), hashlib.sha256).hexdigest()


def new_key() -> str:
    """A fresh key, as text."""
    return base64.urlsafe_b64encode(os.urandom(KEY_BYTES)).decode()


def given_keys(text: str) -> Keys:
    """The keys in a text, newest first, separated by commas. Raises `SettingsError` if one is invalid."""
    keys = tuple(each.strip() for each in text.split(",") if each.strip())
    if not keys or not all(map(_is_key, keys)):
        raise SettingsError(
            f"{VARIABLE} has to be a key as `denizen secrets key` makes it: 32 random bytes in URL-safe Base64, "
            "44 characters; or several with commas between them, the newest first."
        )
    return lambda _: keys


def keys_in_memory() -> Keys:
    """A key that exists only in this process, generated when it is first needed."""
    made: list[str] = []

    def keys(make: bool) -> Sequence[str]:
        if make and not made:
            made.append(new_key())
        return made

    return keys


def no_keys(_make: bool) -> Sequence[str]:
    """No keys are configured."""
    return ()


def keys_in_file(path: Path) -> Keys:
    """The keys in this file, read when needed; the file is created, for its owner only, at the first need."""

    def keys(make: bool) -> Sequence[str]:
        if make and not path.exists():
            _make_file(path)
        return _read(path)

    return keys


def _read(path: Path) -> Sequence[str]:
    try:
        lines = path.read_text("ascii").split()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise SecretUnreadable(f"The file with the keys, {path}, cannot be read: {error}") from error
    if not all(map(_is_key, lines)):
        raise SecretUnreadable(f"{path} does not contain a key. Restore it, or set {VARIABLE} instead.")
    return lines


def _make_file(path: Path) -> None:
    """Create the file with a key. If several processes do so at once, one succeeds, and the others use its key."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{uuid4().hex}")
        try:
            _write(draft, f"{new_key()}\n")
            # A link appears complete, or not at all because there is a file already.
            os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        _keep_folder(path.parent)
    except OSError as error:
        if isinstance(error, FileExistsError) and path.exists():
            return
        raise SecretKeyMissing(f"Cannot store a key in {path}: {error.strerror or error}. {_WHAT_TO_SET}") from error


def _write(path: Path, text: str) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(opened, text.encode())
        # On the disk before anything is sealed with it: a lost key is a lost secret.
        os.fsync(opened)
    finally:
        os.close(opened)


def _keep_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, altchars=b"-_", validate=True)) == KEY_BYTES
    except (binascii.Error, ValueError):
        return False


def _locks(keys: Sequence[str]) -> MultiFernet:
    from cryptography.fernet import Fernet, MultiFernet

    return MultiFernet([Fernet(each) for each in keys])
