"""Markdown as plain text, for speech, logs and previews, and its mentions. Pure, and never raises.

CommonMark with tables and strikethrough; HTML is treated as text. Nothing here knows which handles exist.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from denizen.spaces.handles import HANDLE, MAX_HANDLE_CHARS

MAX_CHARS = 20_000
"""Longer texts are not parsed: they are their own plain text. The parser may need 30 µs for each character."""

# Searched in the text framed by line breaks. Any character that may begin Markdown decides at once; a line break does
# if white space stands before it, if it is one too many, or if what follows may begin a block. It starts with one set
# of characters, because the search for that is fast.
_SIGNIFICANT = re.compile(
    r"[\\`*_~\[\]<>&|\x00-\x1f\x7f]"
    r"(?:(?<!\n)|(?<=\A\n\n)|(?<=\n\n\n)|(?<=[^\S\n]\n)|(?=\n\Z|[#+=-]|[^\S\n]|[0-9]{1,9}[.)]))"
)

# An address is matched first, so that nothing in it counts as a mention.
_MENTION = re.compile(
    r"(?:://|www\.|mailto:|\w\.[A-Za-z]{2,24}/)\S*"
    rf"|(?<![\w+%@&=-])@({HANDLE})(?![^\W_]|@)"
)

# Replaces parts without mentions: code, pictures, addresses, an escaped `@`.
_UNHEARD = "\ufffc"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A message as plain text."""

    plain: str
    mentions: tuple[str, ...]
    """Handles, in lower case, in the order of their first mention."""


def render(markdown: str) -> Rendered:
    """The plain text of `markdown`, and the handles mentioned outside of code and addresses."""
    if len(markdown) > MAX_CHARS or not _SIGNIFICANT.search(f"\n{markdown}\n"):
        return Rendered(markdown, _mentions(markdown))
    return _render_parsed(markdown)


_PROSE = ("", "text", "txt", "plaintext", "markdown", "md")
"""Info strings of fences that hold prose; every other one names a language."""
_FENCE = re.compile(r"(?P<marks>`{3,}|~{3,}) *(?P<info>[^`\n]*)")


def unfenced(markdown: str) -> str:
    """The text without the fence around it, if all of it is one fence of prose; otherwise as it is.

    Small models wrap a whole answer in such a fence, which would be shown as code.
    """
    lines = markdown.strip().split("\n")
    opening = _FENCE.fullmatch(lines[0].rstrip())
    if opening is None or opening["info"].strip().lower() not in _PROSE or len(lines) < 3:
        return markdown
    inner, closing = lines[1:-1], lines[-1].rstrip()
    if closing != opening["marks"] or not any(each.strip() for each in inner):
        return markdown
    in_code = False
    for line in inner:
        if not line.startswith(opening["marks"]):
            continue
        # Only a fence that begins has an info string. A bare one outside of code ends the first fence of several.
        begins = bool(line.rstrip().strip(opening["marks"][0]))
        if begins == in_code:
            return markdown
        in_code = begins
    return markdown if in_code else "\n".join(inner)


def as_html(markdown: str) -> str | None:
    """The text as HTML, for services that show it; None if it has no markup. HTML in it stays text."""
    html = _parser().render(markdown).strip()
    return None if html == f"<p>{escapeHtml(markdown.strip())}</p>" else html


def _mentions(text: str) -> tuple[str, ...]:
    if "@" not in text:
        return ()
    # Word by word: the search is slow, and few words have an `@`.
    found = [match[1] for word in text.split() if "@" in word for match in _MENTION.finditer(word)]
    return tuple(dict.fromkeys(handle.lower() for handle in found if handle and len(handle) <= MAX_HANDLE_CHARS))


def _render_parsed(markdown: str) -> Rendered:
    page = _Page()
    for token in _parser().parse(markdown):
        _write_block(page, token)
    return Rendered("\n".join(page.lines), _mentions("\n".join(page.heard)))


@cache
def _parser() -> MarkdownIt:
    # Without joining, an escaped character stays a token of its own, and `\@ada` can be distinguished from `@ada`.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return parser.disable(["html_block", "html_inline", "text_join"])


@dataclass(slots=True)
class _Margin:
    """The prefix of the lines of a quote or list item."""

    first: str
    rest: str
    begun: bool = False

    def take(self) -> str:
        margin = self.rest if self.begun else self.first
        self.begun = True
        return margin


@dataclass(slots=True)
class _List:
    """An open list."""

    number: int | None
    """The number of its next item; None if it has bullets."""
    tight: bool = False


@dataclass(slots=True)
class _Page:
    """The plain text written so far."""

    lines: list[str] = field(default_factory=list[str])
    heard: list[str] = field(default_factory=list[str])
    margins: list[_Margin] = field(default_factory=list[_Margin])
    lists: list[_List] = field(default_factory=list[_List])
    cells: list[str] = field(default_factory=list[str])
    in_cell: bool = False
    spaced: bool = True
    """Whether an empty line comes before the next block."""

    def write(self, text: str) -> None:
        if self.spaced and self.lines:
            begun = takewhile(lambda margin: margin.begun, self.margins)
            self.lines.append("".join(margin.rest for margin in begun).rstrip())
        for line in text.split("\n"):
            self.lines.append(("".join(margin.take() for margin in self.margins) + line).rstrip())
        self.spaced = True


def _write_block(page: _Page, token: Token) -> None:
    match token.type:
        case "inline":
            text, heard = _inline(token.children or [])
            page.heard.append(heard)
            if page.in_cell:
                page.cells.append(text)
            else:
                page.write(text)
        case "paragraph_close" if token.hidden:
            # The parser hides the paragraphs of tight lists, whose items stand close together.
            page.spaced, page.lists[-1].tight = False, True
        case "fence" | "code_block":
            page.write(token.content.removesuffix("\n"))
        case "hr":
            page.write("---")
        case "blockquote_open":
            page.margins.append(_Margin("> ", "> "))
        case "blockquote_close":
            page.margins.pop()
        case "bullet_list_open" | "ordered_list_open":
            ordered = token.type == "ordered_list_open"
            page.lists.append(_List(int(token.attrs.get("start", 1)) if ordered else None))
        case "bullet_list_close" | "ordered_list_close":
            page.lists.pop()
            page.spaced = page.spaced or not page.lists
        case "list_item_open":
            page.margins.append(_item_margin(page.lists[-1]))
        case "list_item_close":
            _close_item(page)
        case "tr_open":
            page.in_cell, page.cells = True, []
        case "tr_close":
            page.write(" | ".join(page.cells))
            page.in_cell = page.spaced = False
        case "table_close":
            page.spaced = True
        case _:
            pass


def _item_margin(items: _List) -> _Margin:
    if items.number is None:
        return _Margin("- ", "  ")
    marker = f"{items.number}. "
    items.number += 1
    return _Margin(marker, " " * len(marker))


def _close_item(page: _Page) -> None:
    if not page.margins[-1].begun:
        page.write("")
        page.spaced = False
    page.margins.pop()
    if page.lists[-1].tight:
        page.spaced = False


def _inline(tokens: Sequence[Token]) -> tuple[str, str]:
    """The text of a line of Markdown, and the part of it that may hold mentions."""
    shown: list[str] = []
    heard: list[str] = []
    links: list[tuple[int, Token]] = []
    for token in tokens:
        text = _inline_text(token)
        if token.type == "link_open":
            links.append((len(shown), token))
        elif token.type == "link_close":
            start, opened = links.pop()
            text = _address("".join(shown[start:]), opened)
        shown.append(text)
        heard.append(text if _may_mention(token, links) else _UNHEARD if text else "")
    return "".join(shown), "".join(heard)


def _inline_text(token: Token) -> str:
    match token.type:
        case "softbreak" | "hardbreak":
            return "\n"
        case "image":
            return _inline(token.children or [])[0] or "image"
        case _:
            return token.content


def _may_mention(token: Token, links: Sequence[tuple[int, Token]]) -> bool:
    if token.type == "text_special":
        return token.content != "@"
    in_address = any(opened.markup == "autolink" for _, opened in links)
    return token.type in ("text", "softbreak", "hardbreak") and not in_address


def _address(text: str, link: Token) -> str:
    """The address of a link in parentheses after its text, unless the text is the address."""
    address = _parser().normalizeLinkText(str(link.attrs.get("href", ""))).removeprefix("mailto:")
    if link.markup == "autolink" or not address or text.strip().rstrip("/") == address.rstrip("/"):
        return ""
    return f" ({address})" if text else address
