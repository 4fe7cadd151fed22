"""Converts between emojis and Slack's names for them. Pure."""

from __future__ import annotations

import unicodedata
from typing import Final

_NAMES: Final = {
    "+1": "👍",
    "thumbsup": "👍",
    "-1": "👎",
    "thumbsdown": "👎",
    "heart": "❤️",
    "tada": "🎉",
    "smile": "😄",
    "grinning": "😀",
    "joy": "😂",
    "laughing": "😆",
    "slightly_smiling_face": "🙂",
    "wink": "😉",
    "blush": "😊",
    "heart_eyes": "😍",
    "sunglasses": "😎",
    "thinking_face": "🤔",
    "cry": "😢",
    "sob": "😭",
    "angry": "😠",
    "open_mouth": "😮",
    "scream": "😱",
    "pray": "🙏",
    "clap": "👏",
    "wave": "👋",
    "ok_hand": "👌",
    "muscle": "💪",
    "point_up": "☝️",
    "raised_hands": "🙌",
    "handshake": "🤝",
    "eyes": "👀",
    "fire": "🔥",
    "rocket": "🚀",
    "100": "💯",
    "white_check_mark": "✅",
    "heavy_check_mark": "✔️",
    "x": "❌",
    "question": "❓",
    "exclamation": "❗",
    "warning": "⚠️",
    "bulb": "💡",
    "star": "⭐",
    "sparkles": "✨",
    "bug": "🐛",
    "coffee": "☕",
    "hourglass": "⌛",
    "hourglass_flowing_sand": "⏳",
    "raised_hand": "✋",
    "robot_face": "🤖",
}
_EMOJIS: Final = {emoji.removesuffix("\ufe0f"): name for name, emoji in reversed(_NAMES.items())}


def emoji_of(name: str) -> str:
    """The emoji that Slack calls so. One that only this workspace has is `:name:`."""
    name = name.partition("::")[0]
    if name in _NAMES:
        return _NAMES[name]
    try:
        found = unicodedata.lookup(name.replace("_", " ").replace("-", " ").upper())
    except KeyError:
        found = ""
    return found if found and unicodedata.category(found) == "So" else f":{name}:"[:16]


def name_of(emoji: str) -> str:
    """What Slack calls the emoji, as far as that is known."""
    if emoji.startswith(":") and emoji.endswith(":"):
        return emoji.strip(":")
    first = emoji.removesuffix("\ufe0f")
    if first in _EMOJIS:
        return _EMOJIS[first]
    return unicodedata.name(first[:1], "question").lower().replace(" ", "_").replace("-", "_")
