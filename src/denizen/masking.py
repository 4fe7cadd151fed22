"""Hiding secrets in what people read: passwords in URLs, provider keys, bearer tokens, values under telling names."""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "•••"

# Up to the last @: a password that was not percent-encoded may hold an @ or a / itself.
_PASSWORD_IN_URL = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*://[^\s/:@?#]*:)[^\s'\"<>]*(?=@)", re.IGNORECASE)
_SECRET_IN_QUERY = re.compile(
    r"(?P<before>[?&](?:password|passwd|token|secret|api_?key|access_token|sslpassword)=)[^\s&#'\"]+", re.IGNORECASE
)
_BEARER = re.compile(r"(?P<before>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_KEY = re.compile(r"(?P<before>\b(?:sk-|dz_))[A-Za-z0-9_-]{6,}")
_TEXTS: Final = (_PASSWORD_IN_URL, _SECRET_IN_QUERY, _BEARER, _KEY)

_NAMES: Final = re.compile(
    r"(?:^|[_-])(?:password|passwd|pwd|secret|api_?key|authorization|cookie|credentials?|private_key|access_token|token)$",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """The text with everything in it that looks like a secret replaced by a mark."""
    for pattern in _TEXTS:
        text = pattern.sub(rf"\g<before>{MASK}", text)
    return text


def is_secret_name(name: str) -> bool:
    """Whether a value under this name is to be hidden whatever it looks like."""
    return _NAMES.search(name) is not None
