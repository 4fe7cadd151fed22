"""Handles for mentioning people and agents (`@ada`), and display names. Pure."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from denizen.errors import InvalidInput
from denizen.shortening import shortened

MAX_HANDLE_CHARS = 40
MAX_NAME_CHARS = 120

HANDLE = r"[A-Za-z0-9](?:[._-]*[A-Za-z0-9])*+"
"""A handle as a regular expression; its length must be checked in addition."""

_HANDLE = re.compile(HANDLE)
_NOT_IN_HANDLE = re.compile(r"[^a-z0-9._-]+")

# Letters that Unicode does not decompose into a Latin letter and its accents, as their own languages spell them.
_SPELLED = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i", "ħ": "h"}
)


def check_handle(text: str) -> str:
    """The handle in lower case, without white space around it or the `@` before it.

    Raises InvalidInput, with the nearest valid handle, if it is not valid.
    """
    handle = text.strip().removeprefix("@")
    if _HANDLE.fullmatch(handle) and len(handle) <= MAX_HANDLE_CHARS:
        return handle.lower()
    shown, valid = shortened(handle, MAX_HANDLE_CHARS), handle_from(handle[:MAX_NAME_CHARS])
    raise InvalidInput(f"The handle {shown!r} {_fault(handle)}. Try {valid!r}.")


def handle_from(name: str) -> str:
    """A valid handle that resembles `name`: `Dr. Noor Al-Amin` becomes `dr-noor-al-amin`.

    A name with no Latin letter or digit gets one made from its hash, always the same for the same name.
    """
    spelled = unicodedata.normalize("NFKD", name.lower().translate(_SPELLED))
    letters = "".join(char for char in spelled if not unicodedata.combining(char) and char not in "'’")
    words = re.sub(r"[._-]*-[._-]*|\.{2,}", "-", _NOT_IN_HANDLE.sub("-", letters))
    handle = words.strip("._-")[:MAX_HANDLE_CHARS].rstrip("._-")
    return handle or _fallback(name)


def check_name(text: str) -> str:
    """The display name without white space around it. Raises InvalidInput if it is empty, too long or not one line."""
    name = text.strip()
    if not name:
        raise InvalidInput("The name is empty. Give at least one character.")
    if len(name) > MAX_NAME_CHARS:
        raise InvalidInput(f"The name has {len(name)} characters. Shorten it to {MAX_NAME_CHARS}.")
    for char in name:
        # Cc: control characters, Cs: lone surrogates, Zl and Zp: line and paragraph separators.
        if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
            raise InvalidInput(f"The name contains U+{ord(char):04X}, a line break or control character. Remove it.")
    return name


def _fault(handle: str) -> str:
    if not handle:
        return "is empty"
    if strange := re.search(r"[^A-Za-z0-9._-]", handle):
        return f"contains {strange[0]!r}; letters a to z, digits, '-', '_' and '.' are allowed"
    if len(handle) > MAX_HANDLE_CHARS:
        return f"has {len(handle)} characters; {MAX_HANDLE_CHARS} are allowed"
    where = "ends" if handle[0].isalnum() else "starts"
    return f"{where} with {handle[-1 if where == 'ends' else 0]!r}; it must start and end with a letter or digit"


def _fallback(name: str) -> str:
    return "member-" + hashlib.blake2s(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
