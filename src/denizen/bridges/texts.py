"""Prepares texts for chat services: splits them, and adds the author's name. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from denizen.bridges.drafts import WRITING
from denizen.bridges.port import Outgoing
from denizen.spaces.handles import HANDLE

_MENTION: Final = re.compile(rf"(?<![\w@./-])@({HANDLE})")


def parts_of(text: str, most: int, size: Callable[[str], int] = len) -> list[str]:
    """The text in parts of at most this size, cut at line breaks where there are some. At least one, maybe empty."""
    parts: list[str] = []
    while size(text) > most:
        cut = min(most, len(text))
        while (too_much := size(text[:cut]) - most) > 0:
            cut -= max(1, too_much // 4)
        at = text.rfind("\n", cut // 2, cut)
        cut = at + 1 if at > 0 else cut
        parts.append(text[:cut])
        text = text[cut:]
    return [*parts, text]


def draft_of(text: str, most: int, size: Callable[[str], int] = len) -> str:
    """The beginning of a text that is still being written, marked as such, as one message."""
    return f"{parts_of(text, most - size(WRITING), size)[0].rstrip()}{WRITING}"


def bytes_in(text: str) -> int:
    return len(text.encode())


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", errors="replace")) // 2


def named(what: Outgoing, speaker: str) -> str:
    """The text, with the author before it unless that is the bridge itself, or the agent that the bot is."""
    is_bot = not what.author or (bool(speaker) and what.author_handle == speaker.removeprefix("@"))
    return what.text if is_bot else f"{what.author}: {what.text}"


def handles_in(text: str) -> list[str]:
    """The handles that are mentioned in the text."""
    return sorted({found[1].lower() for found in _MENTION.finditer(text)}) if "@" in text else []


def with_accounts(text: str, accounts: Mapping[str, str]) -> str:
    """Mentions the accounts of people there in place of their handles, as Discord and Slack write it."""

    def replaced(found: re.Match[str]) -> str:
        account = accounts.get(found[1].lower())
        return found[0] if account is None else f"<@{account}>"

    return _MENTION.sub(replaced, text) if accounts else text
