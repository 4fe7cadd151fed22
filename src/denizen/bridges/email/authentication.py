"""Reads whether the mail server has authenticated a sender: `Authentication-Results` (RFC 8601). Pure.

Anybody can write such a header. Only the first one of the server that is trusted counts: servers add theirs above what
was sent to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

METHODS: Final = ("dmarc", "dkim", "spf")

_RESULT: Final = re.compile(r"\s*([a-z0-9-]+)(?:/[0-9]+)?\s*=\s*([a-z]+)", re.IGNORECASE)
_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
# What follows a quoted part belongs to the value: the sender "eve@pier.test"@evil.test is of evil.test.
_PROPERTY: Final = re.compile(rf"\b(header|smtp)\.([a-z]+)\s*=\s*((?:{_QUOTED}|[^\s;\"])+)|{_QUOTED}", re.IGNORECASE)
_CLAIM: Final = re.compile(rf'(?:{_QUOTED}|[^;"])+')


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the sender is who the mail says, and what speaks for it."""

    verified: bool
    results: tuple[tuple[str, str], ...]
    """By method: `("dkim", "pass example.org")`."""


def judge(headers: Iterable[str], trusted: str, address: str) -> Verdict:
    """What the first of these headers that is by the trusted server says about a mail from this address."""
    domain = address.rpartition("@")[2].lower()
    for header in headers:
        said = _without_comments(header)
        server, *claims = _CLAIM.findall(said or "") or [""]
        if said is None and trusted and header.strip().lower().startswith(trusted.lower()):
            return Verdict(False, ())
        if not trusted or (server.split()[:1] != [trusted] and server.strip().lower() != trusted.lower()):
            continue
        found = [each for claim in claims if (each := _claim(claim)) is not None]
        good = any(_vouches(each, domain) for each in found)
        return Verdict(good, tuple((method, f"{result} {of}".strip()) for method, result, of in found))
    return Verdict(False, ())


def _claim(claim: str) -> tuple[str, str, str] | None:
    """The method, its result, and the domain that it is about."""
    said = _RESULT.match(claim)
    if said is None or said[1].lower() not in METHODS:
        return None
    method, result = said[1].lower(), said[2].lower()
    told = {f"{each[1]}.{each[2]}".lower(): each[3].lower() for each in _PROPERTY.finditer(claim) if each[1]}
    wanted: Sequence[str] = {
        "dmarc": ("header.from",),
        "dkim": ("header.d", "header.i"),
        "spf": ("smtp.mailfrom", "smtp.from"),
    }[method]
    of = next((told[each] for each in wanted if told.get(each)), "")
    return method, result, of.rpartition("@")[2].strip('<>"')


def _vouches(claim: tuple[str, str, str], domain: str) -> bool:
    """Whether it passed for the domain of the sender, or one above: its owner decides about this one."""
    _, result, of = claim
    return result == "pass" and "." in of and (domain == of or domain.endswith(f".{of}"))


def _without_comments(header: str) -> str | None:
    """The header without what is in brackets, which may be nested; quoted text stays. None if quotes are in brackets or
    have no end: servers repeat there what a sender says of themselves, which may be made to look like more results.
    """
    kept: list[str] = []
    depth, quoted, escaped = 0, False, False
    for each in header:
        if each == '"' and not escaped:
            if depth:
                return None
            quoted = not quoted
        if not quoted and each == "(":
            depth += 1
        elif not quoted and each == ")" and depth:
            depth -= 1
        elif depth == 0:
            kept.append(each)
        escaped = each == "\\" and not escaped
    return None if quoted or depth else "".join(kept)
