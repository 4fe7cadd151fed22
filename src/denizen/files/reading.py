"""Which files are read and how, and the text of files as pages. Pure."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final, Literal

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


Kind = Literal["pdf", "word", "slides", "sheets", "html", "mail", "picture"]
"""Files that are read in a process of their own."""
_KINDS: Final[dict[str, Kind]] = {
    "application/pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "word",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "slides",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "sheets",
    "application/vnd.ms-excel": "sheets",
    "application/vnd.oasis.opendocument.spreadsheet": "sheets",
    "application/xhtml+xml": "html",
    "text/html": "html",
    "message/rfc822": "mail",
    "image/avif": "picture",
    "image/gif": "picture",
    "image/jpeg": "picture",
    "image/png": "picture",
    "image/webp": "picture",
}
_SUFFIXES: Final[dict[str, Kind]] = {
    ".pdf": "pdf",
    ".docx": "word",
    ".pptx": "slides",
    ".xlsx": "sheets",
    ".xls": "sheets",
    ".ods": "sheets",
    ".htm": "html",
    ".html": "html",
    ".eml": "mail",
}


def kind_of(name: str, media_type: str) -> Kind | None:
    """What has to be read in a process of its own; None: text as it is, or nothing that can be read."""
    return _KINDS.get(media_type) or _SUFFIXES.get(PurePath(name).suffix.lower())


def is_text(name: str, media_type: str) -> bool:
    """Whether the bytes are text as they are."""
    if kind_of(name, media_type) is not None:
        return False
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
    return cut_pages(text) if text.strip() else []


def cut_pages(text: str) -> list[str]:
    """The text in pages, cut at ends of lines."""
    pages: list[str] = []
    start = 0
    while start < len(text):
        end = min(start + PAGE_CHARACTERS, len(text))
        if end < len(text):
            end = text.rfind("\n", start + PAGE_CHARACTERS // 2, end) + 1 or end
        pages.append(text[start:end])
        start = end
    return pages
