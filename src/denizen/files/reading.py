"""The text of files, as pages. Pure."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

MOST_BYTES: Final = 4 * 1024 * 1024
"""Larger text files are stored, but their text is not read."""
PAGE_CHARACTERS: Final = 20_000
"""About how long the pages of a file are that has none itself."""
_TEXT_TYPES: Final = frozenset(
    {
        "application/javascript",
        "application/json",
        "application/jsonl",
        "application/sql",
        "application/toml",
        "application/x-ndjson",
        "application/x-sh",
        "application/xml",
        "application/yaml",
    }
)
_TEXT_SUFFIXES: Final = frozenset(
    {
        ".c", ".cc", ".cfg", ".conf", ".cpp", ".cs", ".css", ".csv", ".env", ".go", ".h", ".hpp", ".html", ".ini",
        ".java", ".js", ".json", ".jsonl", ".jsx", ".kt", ".log", ".lua", ".md", ".mjs", ".php", ".pl", ".py", ".r",
        ".rb", ".rs", ".rst", ".sh", ".sql", ".svg", ".swift", ".tex", ".toml", ".ts", ".tsv", ".tsx", ".txt", ".vue",
        ".xml", ".yaml", ".yml",
    }
)  # fmt: skip


def is_text(name: str, media_type: str) -> bool:
    """Whether the bytes are text as they are."""
    known = media_type.startswith("text/") or media_type in _TEXT_TYPES or media_type.endswith(("+json", "+xml"))
    return known or PurePath(name).suffix.lower() in _TEXT_SUFFIXES


def text_pages(data: bytes) -> list[str]:
    """The text of a text file, cut into pages at ends of lines; nothing if the bytes are no text."""
    try:
        text = data.decode("utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")
    except UnicodeDecodeError:
        if b"\0" in data:
            return []
        text = data.decode("cp1252", errors="replace")
    text = text.replace("\r\n", "\n").replace("\0", "\ufffd")
    pages: list[str] = []
    start = 0
    while start < len(text):
        end = min(start + PAGE_CHARACTERS, len(text))
        if end < len(text):
            end = text.rfind("\n", start + PAGE_CHARACTERS // 2, end) + 1 or end
        pages.append(text[start:end])
        start = end
    return pages if text.strip() else []
