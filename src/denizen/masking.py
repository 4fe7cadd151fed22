"""Masks secrets in what people read: passwords in URLs, provider keys, bearer tokens, values with telling names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

MASK: Final = "•••"
_SHORTEST: Final = 4
"""Shorter values are not secrets, and masking them would riddle every text."""

# Up to the last @: a password that was not percent-encoded may contain an @ or a / itself.
_PASSWORD_IN_URL = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*://[^\s/:@?#]*:)[^\s'\"<>]*(?=@)", re.IGNORECASE)
_SECRET_IN_QUERY = re.compile(
    r"(?P<before>[?&](?:password|passwd|token|secret|key|api_?key|access_token|sslpassword)=)[^\s&#'\"]+", re.IGNORECASE
)
_BEARER = re.compile(r"(?P<before>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_KEY = re.compile(r"(?P<before>\b(?:sk-|dz[lsp]?_))[A-Za-z0-9_-]{6,}")
_JWT = re.compile(r"(?P<before>\beyJ)[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_TEXTS: Final = (_PASSWORD_IN_URL, _SECRET_IN_QUERY, _BEARER, _KEY, _JWT)

_NAMES: Final = re.compile(
    r"(?:^|[_-])(?:password|passwd|pwd|secret|api_?key|authorization|cookie|credentials?|private_key|access_token|token)$",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """Replaces everything in the text that looks like a secret."""
    for pattern in _TEXTS:
        text = pattern.sub(rf"\g<before>{MASK}", text)
    return text


def without(text: str, secrets: Iterable[str]) -> str:
    """Replaces these secrets in the text, as they are and as JSON or a URL would spell them."""
    spellings = {
        spelling
        for secret in secrets
        if len(secret) >= _SHORTEST
        for spelling in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], quote(secret))
    }
    # The longest first: one secret may be part of another.
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, MASK)
    return text


def is_secret_name(name: str) -> bool:
    """Whether a value with this name is masked whatever it looks like."""
    return _NAMES.search(name) is not None
