"""The presets file, validated: presets, rules, defaults. Pure.

Unknown fields are allowed and ignored; those that are nearly ours get a warning. A reference to something that does not
exist is an error that says where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from denizen.errors import InvalidInput
from denizen.nearest import nearest

ADDON_CHARACTERS: Final = 4_000
"""The longest add-on; a longer one is an error."""
PREFIX: Final = "_meta/"
"""Optional before the key of an add-on."""
TOP: Final = (
    "version",
    "routing",
    "presets",
    "rules",
    "addonPrompts",
    "memoryCompaction",
    "sentimentTracking",
    "metaPrompts",
)
"""The top-level keys of a presets file; some belong to other parts."""

FindAddon = Callable[[str], str | None]
"""Returns the text of the add-on with this key, if there is one."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A named list of add-ons."""

    id: str
    addons: tuple[str, ...]
    label: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """The conditions for choosing a preset. A condition that is not given does not matter."""

    id: str
    preset: str
    priority: int = 0
    modes: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    """Words or phrases of which at least one must occur."""
    all: tuple[str, ...] = ()
    """Words or phrases that must all occur."""
    least: int = 0
    """The least length of the message in characters."""
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Presets:
    """Everything that decides a choice."""

    presets: Mapping[str, Preset]
    rules: tuple[Rule, ...] = ()
    """The first that applies decides: highest priority first, then in the order of the file."""
    default: str | None = None
    by_mode: Mapping[str, str] = field(default_factory=dict[str, str])
    review_every: int = 6
    """Turns of a conversation between two choices; 0: only when something else triggers one."""
    review_on_compaction: bool = True
    addons: Mapping[str, str] = field(default_factory=dict[str, str])
    """The texts of the add-ons, by key."""
    warnings: tuple[str, ...] = ()

    def text(self, preset_id: str) -> str:
        """Returns the instructions of a preset, its add-ons one after the other; empty if it has none or does not
        exist.
        """
        preset = self.presets.get(preset_id)
        return "" if preset is None else "\n\n".join(self.addons[key] for key in preset.addons)


_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", alias_generator=to_camel, frozen=True, strict=True)


class _Routing(_Part):
    review_every_n_turns: int = Field(default=6, ge=0, le=1_000_000, alias="reviewEveryNTurns")
    force_review_on_compaction: bool = True
    default_preset_id: _Text | None = None
    default_preset_by_mode: dict[_Text, _Text] = Field(default_factory=dict[str, str])


class _Preset(_Part):
    id: _Text
    label: str = ""
    description: str = ""
    addon_prompt_keys: list[_Text] = Field(default_factory=list[str])


class _Rule(_Part):
    preset_id: _Text
    id: str = ""
    priority: int = 0
    modes: list[_Text] = Field(default_factory=list[str])
    any_keywords: list[_Text] = Field(default_factory=list[str])
    all_keywords: list[_Text] = Field(default_factory=list[str])
    min_message_chars: int = Field(default=0, ge=0)
    max_message_chars: int | None = Field(default=None, ge=0)


class _File(_Part):
    routing: _Routing = _Routing()
    presets: list[_Preset] = Field(default_factory=list[_Preset])
    rules: list[_Rule] = Field(default_factory=list[_Rule])
    addon_prompts: dict[str, str] = Field(default_factory=dict[str, str])


def read(given: Mapping[str, JsonValue], find_addon: FindAddon) -> Presets | None:
    """Parses the file; None if it has no presets. Raises `InvalidInput` with everything that is wrong in it."""
    if "presets" not in given:
        return None
    try:
        file = _File.model_validate({name: given[name] for name in _OURS if name in given})
    except ValidationError as error:
        raise InvalidInput("Invalid presets. " + " ".join(_sentences(error))) from error
    addons, problems = _find_addons(file, find_addon)
    problems += [*_twice(file), *_dangling(file)]
    if problems:
        raise InvalidInput("Invalid presets. " + " ".join(problems))
    return _made_of(file, addons, tuple(near_misses(given)))


_OURS: Final = ("routing", "presets", "rules", "addonPrompts")


def _made_of(file: _File, addons: Mapping[str, str], warnings: tuple[str, ...]) -> Presets:
    routing = file.routing
    rules = [_rule(each, at) for at, each in enumerate(file.rules)]
    return Presets(
        presets={each.id: _preset(each) for each in file.presets},
        rules=tuple(sorted(rules, key=lambda rule: -rule.priority)),
        default=routing.default_preset_id,
        by_mode=routing.default_preset_by_mode,
        review_every=routing.review_every_n_turns,
        review_on_compaction=routing.force_review_on_compaction,
        addons=addons,
        warnings=warnings,
    )


def _preset(given: _Preset) -> Preset:
    keys = tuple(dict.fromkeys(map(plain_key, given.addon_prompt_keys)))
    return Preset(given.id, keys, given.label, given.description)


def _rule(given: _Rule, at: int) -> Rule:
    return Rule(
        id=given.id or f"rules[{at}]",
        preset=given.preset_id,
        priority=given.priority,
        modes=tuple(given.modes),
        any=tuple(given.any_keywords),
        all=tuple(given.all_keywords),
        least=given.min_message_chars,
        most=given.max_message_chars,
    )


def plain_key(key: str) -> str:
    """Normalizes the key of an add-on: `concise` for `_meta/concise` and `_meta/concise.md`."""
    return key.removeprefix(PREFIX).removesuffix(".md")


def _find_addons(file: _File, find_addon: FindAddon) -> tuple[dict[str, str], list[str]]:
    inline = {plain_key(key): text for key, text in file.addon_prompts.items()}
    found: dict[str, str] = {}
    problems: list[str] = []
    for at, preset in enumerate(file.presets):
        for nth, key in enumerate(map(plain_key, preset.addon_prompt_keys)):
            where = f"presets[{at}].addonPromptKeys[{nth}]"
            text = inline.get(key) or find_addon(key)
            if text is None or not text.strip():
                problems.append(f"{where}: there is no add-on {key!r}: write it to prompts/{PREFIX}{key}.md.")
            elif len(text) > ADDON_CHARACTERS:
                problems.append(f"{where}: the add-on {key!r} has more than {ADDON_CHARACTERS:,} characters.")
            else:
                found[key] = text.strip()
    return found, problems


def _twice(file: _File) -> Iterator[str]:
    for what, ids in (("presets", [each.id for each in file.presets]), ("rules", [each.id for each in file.rules])):
        for at, id in enumerate(ids):
            if id and id in ids[:at]:
                yield f"{what}[{at}].id: {id!r} appears twice."


def _dangling(file: _File) -> Iterator[str]:
    known = [each.id for each in file.presets]
    named = [(f"rules[{at}].presetId", each.preset_id) for at, each in enumerate(file.rules)]
    named += [(f"routing.defaultPresetByMode.{mode}", id) for mode, id in file.routing.default_preset_by_mode.items()]
    if file.routing.default_preset_id is not None:
        named.append(("routing.defaultPresetId", file.routing.default_preset_id))
    for where, id in named:
        if id not in known:
            yield f"{where}: there is no preset {id!r}{_nearest(id, known)}."


def _sentences(error: ValidationError) -> Iterator[str]:
    for each in error.errors(include_url=False):
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in each["loc"]).lstrip(".")
        yield f"{where}: {each['msg'].removeprefix('Value error, ')}."


# Probable typing errors


def near_misses(given: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yields a sentence for each ignored field that is nearly one of ours."""
    yield from _near("", given, TOP)
    for name, model in (("routing", _Routing), ("presets", _Preset), ("rules", _Rule)):
        known = [each.alias or key for key, each in model.model_fields.items()]
        part = given.get(name)
        for at, each in enumerate(part) if isinstance(part, list) else ((None, part),):
            if isinstance(each, Mapping):
                place = f"{name}." if at is None else f"{name}[{at}]."
                yield from _near(place, cast("Mapping[str, JsonValue]", each), known)


def _near(place: str, given: Mapping[str, JsonValue], known: Sequence[str]) -> Iterator[str]:
    folded = {each.casefold(): each for each in known}
    for name in given:
        if name in known:
            continue
        meant = nearest(name.casefold().replace("_", ""), folded, cutoff=0.8)
        if meant:
            yield f"{place}{name} is ignored: did you mean {folded[meant[0]]}?"


def _nearest(name: str, known: Sequence[str]) -> str:
    near = nearest(name, known)
    return f"; did you mean {near[0]!r}" if near else ""
