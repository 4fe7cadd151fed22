"""Finds thinking that a model writes between tags in its text, however the text is split into chunks.

pydantic-ai recognizes a tag only if it is a chunk of its own. Local servers split anywhere: inside a tag, or with text
on both sides of it. Here the text is split again, so that each tag is a chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ThinkingPart
from pydantic_ai.profiles import DEFAULT_THINKING_TAGS

if TYPE_CHECKING:
    from pydantic_ai.models import StreamedResponse

_MAPPING = "_map_text_delta"
"""The method with which pydantic-ai makes parts from a chunk of text."""


class TagSplitter:
    """Splits a text that arrives in chunks so that each tag is a piece of its own."""

    def __init__(self, tags: tuple[str, str]) -> None:
        self._tags = tags
        self._open = False
        self._held = ""

    def feed(self, chunk: str) -> list[str]:
        """Returns the pieces so far. The end of the chunk is held back while it may be the beginning of a tag."""
        text, pieces = self._held + chunk, list[str]()
        while True:
            tag = self._tags[self._open]
            at = text.find(tag)
            if at < 0:
                break
            pieces += [text[:at], tag]
            text = text[at + len(tag) :]
            self._open = not self._open
        kept = _beginning_of(self._tags[self._open], text)
        self._held = text[len(text) - kept :]
        pieces.append(text[: len(text) - kept])
        return [each for each in pieces if each]

    def rest(self) -> str:
        """Returns what was held back, when nothing more comes."""
        held, self._held = self._held, ""
        return held


def _beginning_of(tag: str, text: str) -> int:
    """Returns how many characters at the end of the text may begin the tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)


def split_thinking(streamed: StreamedResponse) -> None:
    """Makes the stream of an OpenAI chat server return the text between thinking tags as thinking."""
    mapping: Callable[[Any], Iterable[Any]] | None = getattr(streamed, _MAPPING, None)
    if mapping is None:
        return
    profile: dict[str, Any] = getattr(streamed, "_model_profile", None) or {}
    splitter = TagSplitter(profile.get("thinking_tags", DEFAULT_THINKING_TAGS))

    def mapped(choice: Any) -> Iterator[Any]:
        content = choice.delta.content
        ends = choice.finish_reason is not None
        if not isinstance(content, str) and content is not None:
            yield from mapping(choice)
            return
        pieces = splitter.feed(content or "")
        pieces += [splitter.rest()] if ends else []
        if pieces == [content]:
            yield from mapping(choice)
            return
        for piece in pieces:
            yield from mapping(choice.model_copy(update={"delta": choice.delta.model_copy(update={"content": piece})}))

    vars(streamed)[_MAPPING] = mapped


def without_tags(response: ModelResponse) -> ModelResponse:
    """Removes thinking from the response's text if only the closing tag was written: the prompt had opened it."""
    end = DEFAULT_THINKING_TAGS[1]
    if not any(isinstance(part, TextPart) and end in part.content for part in response.parts):
        return response
    parts = list[ModelResponsePart]()
    for part in response.parts:
        if isinstance(part, TextPart) and end in part.content:
            thought, _, said = part.content.rpartition(end)
            parts.append(ThinkingPart(thought.strip()))
            parts += [replace(part, content=said.lstrip())] if said.strip() else []
        else:
            parts.append(part)
    return replace(response, parts=parts)
