"""Chooses the part of an agent's past that the next request shows. Pure: no clock, no storage, no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from denizen.consciousness.log import Entry
from denizen.consciousness.settings import WindowSettings
from denizen.models.pictures import pictures_of, without_picture
from denizen.models.tokens import estimate_message

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelRequestPart

SMALLEST_RESULT_CHARACTERS: Final = 400
WITHOUT_PICTURES: Final = 10**9
"""Shortens an entry only by its pictures: of each, a line stays."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How many tokens a request may have."""

    request: int
    """The whole request: the self, the tools, the past and the present."""
    output: int
    """For the model's answer."""
    inbox: int
    """For one inbox message."""


SMALLEST_OUTPUT_TOKENS: Final = 256


def budget(settings: WindowSettings, context_tokens: int | None, fixed_tokens: int = 0) -> Budget:
    """The lower of what the owner allows and what the model accepts, with room for its answer.

    `fixed_tokens` are in every request, such as the tools: in a small context, at most a third of the rest is output.
    """
    context = settings.context_tokens or context_tokens or settings.max_tokens + settings.output_tokens
    left = max((context - fixed_tokens) // 3, SMALLEST_OUTPUT_TOKENS)
    output = min(settings.output_tokens, context // 4, left)
    request = min(settings.max_tokens, context - output)
    return Budget(request, output, int(request * settings.inbox_share))


def _first_within(entries: Sequence[Entry], sizes: Sequence[int], tokens: int) -> int:
    """The index of the first entry to keep so that the rest, in whole cycles, has at most `tokens`.

    Cycles are never split, so no tool call is separated from its result. May keep nothing.
    """
    kept, spent = len(entries), 0
    for at in reversed(range(len(entries))):
        spent += sizes[at]
        if spent > tokens:
            break
        if at == 0 or entries[at - 1].cycle_id != entries[at].cycle_id:
            kept = at
    return kept


# Shown entries


def shown(entries: Sequence[Entry], shortened: Mapping[int, int]) -> list[Entry]:
    """The entries as the model sees them."""
    if not shortened:
        return list(entries)
    return [_short(each, shortened.get(each.seq)) for each in entries if shortened.get(each.seq) != 0]


def _short(entry: Entry, characters: int | None) -> Entry:
    if characters is None or entry.message.kind != "request":
        return entry
    parts = [_short_part(part, entry.seq, at, characters) for at, part in enumerate(entry.message.parts)]
    message = replace(entry.message, parts=parts)
    return replace(entry, message=message, tokens=estimate_message(message))


def _short_part(part: ModelRequestPart, seq: int, at: int, characters: int) -> ModelRequestPart:
    part = without_picture(part)
    if part.part_kind != "tool-return" or not isinstance(part.content, str) or len(part.content) <= characters:
        return part
    pointer = f'… [shortened; read_entry("log:{seq}:{at}") shows all of it]'
    return replace(part, content=part.content[: max(characters - len(pointer), 0)] + pointer)


@dataclass(frozen=True, slots=True)
class WindowRest:
    """The part that stays in the window."""

    first: int
    """The index of the first entry that stays."""
    shortened: Mapping[int, int]


def keep(
    entries: Sequence[Entry], shortened: Mapping[int, int], *, target: int, half: int, recent_cycles: int
) -> WindowRest:
    """As many whole cycles as have at most `target` tokens; of the most recent, as many as have at most `half`.

    `entries` are as they are shown. If fewer than `recent_cycles` stay, tool results are shortened first, oldest first.
    Recalled and remembered text is no longer shown, and of pictures only a line.
    """
    views = {each.seq: WITHOUT_PICTURES for each in entries if pictures_of(each.message)} | dict(shortened)
    views |= {each.seq: 0 for each in entries if each.kind in ("recalled", "remembered")}
    sizes = [0 if views.get(each.seq) == 0 else _short(each, views.get(each.seq)).tokens for each in entries]
    first = _first_within(entries, sizes, target)
    recent = first_of_last(entries, recent_cycles)
    if recent < first:
        over = sum(sizes[recent:]) - half
        for at in range(recent, len(entries)):
            if over <= 0:
                break
            if entries[at].kind == "results" and views.get(entries[at].seq, WITHOUT_PICTURES) == WITHOUT_PICTURES:
                short = _short(entries[at], SMALLEST_RESULT_CHARACTERS).tokens
                if short < sizes[at]:
                    views[entries[at].seq] = SMALLEST_RESULT_CHARACTERS
                    over -= sizes[at] - short
                    sizes[at] = short
        first = min(first, max(recent, _first_within(entries, sizes, half)))
    left = entries[first].seq if first < len(entries) else entries[-1].seq + 1 if entries else 0
    return WindowRest(first, {seq: characters for seq, characters in views.items() if seq >= left})


def first_of_last(entries: Sequence[Entry], cycles: int) -> int:
    """The index at which the last `cycles` cycles begin."""
    firsts = [at for at, each in enumerate(entries) if at == 0 or entries[at - 1].cycle_id != each.cycle_id]
    return firsts[-cycles] if len(firsts) >= cycles else 0


def result_characters(*, limit: int, room_tokens: int, results: int) -> int:
    """How many characters each of this many tool results may have, so that together they fit."""
    return max(min(limit, room_tokens * 4 // max(results, 1)), SMALLEST_RESULT_CHARACTERS)
