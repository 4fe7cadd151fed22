"""Reads the text of a mail: converts HTML, and leaves out quoted earlier mails. Pure."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

_SKIPPED: Final = frozenset({"head", "style", "script", "title", "template", "svg", "noscript"})
_BLOCKS: Final = frozenset(
    {"address", "article", "aside", "blockquote", "dd", "div", "dl", "dt", "figure", "footer", "form", "header", "hr"}
    | {"h1", "h2", "h3", "h4", "h5", "h6", "li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul"}
)

# The lines under which mail programs put the mail that is replied to.
_HEADING: Final = re.compile(
    r"^\W*(original message|original-nachricht|ursprüngliche nachricht|message d'origine|mensaje original|"
    r"oorspronkelijk bericht|messaggio originale|forwarded message)\W*$",
    re.IGNORECASE,
)
_FIELD: Final = re.compile(r"^\W{0,2}(from|von|de|da|van|från|fra)\W{0,2}:\s*\S", re.IGNORECASE)
_MORE_FIELDS: Final = re.compile(
    r"^\W{0,2}(sent|date|to|subject|gesendet|datum|an|betreff|envoyé|à|objet|enviado|para|asunto|verzonden|aan|"
    r"onderwerp|inviato|a|oggetto)\W{0,2}:\s*\S",
    re.IGNORECASE,
)
_ATTRIBUTION_CHARACTERS: Final = 500
_DECLARATION: Final = re.compile(r"<!--|<!|<\?")
HTML_CHARACTERS: Final = 300_000
LINKS_IN_LINKS: Final = 20
_SIGNATURE: Final = re.compile(r"^(-- ?|__+|Sent from my .{1,40}|Von meinem .{1,40} gesendet)$")


def without_quotes(text: str) -> str:
    """What the writer has added: without the mail that they reply to at the end, and without their signature.

    Quotes with answers between them stay: without them the answers say nothing. If nothing would be left, all stays.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    end = _end(lines)
    for at in range(end):
        if _SIGNATURE.match(lines[at]) and end - at <= 15 and not any(each.startswith(">") for each in lines[at:end]):
            end = at
            break
    kept = "\n".join(lines[:end]).strip()
    return kept or text.strip()


def _end(lines: list[str]) -> int:
    """Where what was said before begins."""
    for at, line in enumerate(lines):
        if _HEADING.match(line.strip()):
            return at
        if _FIELD.match(line) and sum(bool(_MORE_FIELDS.match(each)) for each in lines[at + 1 : at + 6]) >= 2:
            return at
    end = len(lines)
    while end and (not lines[end - 1].strip() or lines[end - 1].startswith(">")):
        end -= 1
    if any(each.startswith(">") for each in lines[end:]):
        # "On Monday, Ada wrote:", in whatever language: the lines before, up to three, or the last one of more.
        begin = end
        while begin and lines[begin - 1].strip():
            begin -= 1
        begin = begin if end - begin <= 3 else end - 1
        told = "\n".join(lines[begin:end]).rstrip()
        if len(told) <= _ATTRIBUTION_CHARACTERS and told.endswith(":") and re.search(r"[\d@<]", told):
            return begin
    return end


def text_of_html(html: str) -> str:
    """The text of HTML as a mail program shows it: quotes with `>`, items with `-`, addresses of links after them."""
    reader = _Reader()
    reader.feed(_without_comments(html[:HTML_CHARACTERS]))
    reader.close()
    return reader.text()


def _without_comments(html: str) -> str:
    """The HTML without comments and declarations. As in browsers, one that does not end goes on to the end.

    The standard library looks for the end of each of them anew, up to the end of the text: a mail full of beginnings
    would keep it busy for hours. The same holds for tags, so that what follows the last of them is text.
    """
    kept: list[str] = []
    at = 0
    while (begin := _DECLARATION.search(html, at)) is not None:
        kept.append(html[at : begin.start()])
        ends = "-->" if begin[0] == "<!--" else ">"
        end = html.find(ends, begin.end())
        at = len(html) if end < 0 else end + len(ends)
    kept.append(html[at:])
    tags, closing, text = "".join(kept).rpartition(">")
    return tags + closing + text.replace("<", "&lt;")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._lines: list[str] = []
        self._line: list[str] = []
        self._skipped = 0
        self._quotes = 0
        self._raw = 0
        self._links: list[tuple[str, int]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED:
            self._skipped += 1
        elif tag == "br":
            self._break()
        elif tag in _BLOCKS:
            self._break_if_begun()
            self._quotes += tag == "blockquote"
            self._raw += tag == "pre"
            if tag == "li":
                self._line.append("- ")
        elif tag == "a" and len(self._links) < LINKS_IN_LINKS:
            self._links.append((dict(attrs).get("href") or "", len(self._line)))

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self._skipped = max(self._skipped - 1, 0)
        elif tag == "a" and self._links:
            self._end_link()
        elif tag in _BLOCKS:
            self._break_if_begun()
            self._quotes = max(self._quotes - (tag == "blockquote"), 0)
            self._raw = max(self._raw - (tag == "pre"), 0)
            if tag == "p" or tag.startswith("h"):
                self._break()

    def handle_data(self, data: str) -> None:
        if self._skipped:
            return
        if self._raw:
            first, *others = data.split("\n")
            self._line.append(first)
            for each in others:
                self._break()
                self._line.append(each)
        else:
            self._line.append(re.sub(r"[ \t\r\n\f]+", " ", data))

    def _end_link(self) -> None:
        href, since = self._links.pop()
        shown = "".join(self._line[since:]).strip()
        if href.startswith(("http://", "https://")) and shown.rstrip("/") != href.rstrip("/"):
            self._line.append(f" ({href})")

    def _break_if_begun(self) -> None:
        if "".join(self._line).strip():
            self._break()
        else:
            self._line = []

    def _break(self) -> None:
        line = "".join(self._line)
        said = line.rstrip() if self._raw else re.sub(r" +", " ", line).strip()
        self._lines.append(f"{'>' * min(self._quotes, 20)} {said}".strip() if self._quotes else said)
        self._line = []
        self._links = [(href, 0) for href, _ in self._links[-20:]]

    def text(self) -> str:
        self._break_if_begun()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip()
