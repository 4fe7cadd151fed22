"""The reflection part of the presets file: quick-start profiles and metaprompts, merged over those we ship. Pure.

The file uses JSON names (`historyWindow`), definitions use Python names (`history_window`); both mean the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic.alias_generators import to_camel

from denizen.errors import InvalidInput
from denizen.nearest import nearest
from denizen.reflection.names import reflection_fields, snake, with_model
from denizen.reflection.settings import (
    ALL,
    EventBased,
    Manual,
    Metaprompt,
    ReflectionSettings,
    SentimentSettings,
    TurnInterval,
)

SECTION: Final = "sentimentTracking"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The profiles and metaprompts that agents can refer to by name."""

    profiles: Mapping[str, SentimentSettings] = field(default_factory=dict[str, SentimentSettings])
    metaprompts: Mapping[str, Metaprompt] = field(default_factory=dict[str, Metaprompt])
    warnings: tuple[str, ...] = ()
    """Ignored fields that look like typing errors."""
    intervals: tuple[str, ...] = ()
    """The metaprompts by interval in the operator's file: every agent that reflects asks them."""


@dataclass(frozen=True, slots=True)
class Effective:
    """The settings of an agent in one conversation, resolved."""

    sentiment: SentimentSettings
    metaprompts: tuple[Metaprompt, ...]
    model: str | None = None
    warnings: tuple[str, ...] = ()
    """Names that do not exist here."""

    @property
    def idle(self) -> bool:
        """Whether reflecting on a turn cannot have any effect."""
        return not self.sentiment.enabled and all(each.trigger.type != "turn_interval" for each in self.metaprompts)


def read(shipped: Mapping[str, JsonValue], own: Mapping[str, JsonValue]) -> Configuration:
    """Merges both; an entry of the operator's file replaces ours with the same name. Raises `InvalidInput`."""
    profiles: dict[str, SentimentSettings] = {}
    metaprompts: dict[str, Metaprompt] = {}
    problems: list[str] = []
    warnings: list[str] = []
    for given in (shipped, own):
        section = given.get(SECTION, {})
        if not isinstance(section, Mapping):
            raise InvalidInput(f"{SECTION} has to be an object.")
        warnings += _near_misses(section, ("profiles", "presets"), SECTION)
        for name, each in _items(section, "profiles", problems):
            where = f"{SECTION}.profiles.{name}"
            _keep(profiles, name, SentimentSettings, _known(SentimentSettings, each, where, warnings), where, problems)
        found = [*_listed(section, "presets", SECTION, problems), *_listed(given, "metaPrompts", "", problems)]
        ids: set[str] = set()
        for where, each in found:
            known = _known(Metaprompt, each, where, warnings)
            id = str(known.get("id")) if isinstance(known, Mapping) else ""
            problems += [f"{where}.id: {id!r} appears twice."] if id in ids else []
            ids.add(id)
            _keep(metaprompts, id, Metaprompt, known, where, problems)
    problems += _dangling(profiles, metaprompts)
    if problems:
        raise InvalidInput("Invalid reflection settings. " + " ".join(problems))
    listed = own.get("metaPrompts", [])
    named = [str(each.get("id")) for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    intervals = tuple(id for id in named if id in metaprompts and metaprompts[id].trigger.type == "turn_interval")
    return Configuration(profiles, metaprompts, tuple(warnings), intervals)


def _dangling(profiles: Mapping[str, SentimentSettings], metaprompts: Mapping[str, Metaprompt]) -> Iterator[str]:
    for name, profile in profiles.items():
        for at, preset in enumerate(profile.presets):
            if preset != ALL and preset not in metaprompts:
                yield f"{SECTION}.profiles.{name}.presets[{at}]: there is no metaprompt {preset!r}."


def _known(shape: type[BaseModel], given: JsonValue, where: str, warnings: list[str]) -> JsonValue:
    """Converts to Python names and drops unknown fields; warns about those that are nearly ours."""
    found = with_model(snake(given))
    if not isinstance(found, Mapping):
        return found
    names = list(shape.model_fields)
    warnings += _near_misses(found, names, where)
    known = {name: value for name, value in found.items() if name in names}
    trigger = known.get("trigger")
    if isinstance(trigger, Mapping) and (kind := _TRIGGERS.get(str(trigger.get("type")))) is not None:
        known["trigger"] = _known(kind, trigger, f"{where}.trigger", warnings)
    return known


_TRIGGERS: Final[Mapping[str, type[BaseModel]]] = {
    "turn_interval": TurnInterval,
    "event_based": EventBased,
    "manual": Manual,
}


def _near_misses(given: Iterable[str], names: Sequence[str], where: str) -> Iterator[str]:
    for name in given:
        near = [] if name in names else nearest(name, names, cutoff=0.8)
        yield from (f"{where}.{to_camel(name)} is ignored: did you mean {to_camel(each)}?" for each in near)


def _items(section: Mapping[str, JsonValue], name: str, problems: list[str]) -> Iterator[tuple[str, JsonValue]]:
    found = section.get(name, {})
    if isinstance(found, Mapping):
        yield from found.items()
    else:
        problems.append(f"{SECTION}.{name} has to be an object.")


def _listed(
    given: Mapping[str, JsonValue], name: str, outer: str, problems: list[str]
) -> Iterator[tuple[str, JsonValue]]:
    found, where = given.get(name, []), f"{outer}.{name}".lstrip(".")
    if isinstance(found, list):
        yield from ((f"{where}[{at}]", each) for at, each in enumerate(found))
    else:
        problems.append(f"{where} has to be a list.")


def _keep(kept: dict[str, Any], name: str, shape: Any, given: JsonValue, where: str, problems: list[str]) -> None:
    try:
        kept[name] = shape.model_validate(given)
    except ValidationError as error:
        problems += [
            f"{'.'.join([where, *map(str, each['loc'])])}: {each['msg'].removeprefix('Value error, ')}."
            for each in error.errors(include_url=False)
        ]


def effective(settings: ReflectionSettings, by: Configuration) -> Effective:
    """Resolves the settings. An unknown name becomes a warning and is ignored."""
    warnings: list[str] = []
    sentiment = settings.sentiment or by.profiles.get(settings.profile)
    if sentiment is None:
        sentiment = SentimentSettings()
        warnings.append(f"there is no profile {settings.profile!r}")
    chosen: dict[str, Metaprompt] = {id: by.metaprompts[id] for id in by.intervals}
    for name in sentiment.presets:
        if name == ALL:
            chosen |= {id: each for id, each in by.metaprompts.items() if each.trigger.type == "event_based"}
        elif name in by.metaprompts:
            chosen[name] = by.metaprompts[name]
        else:
            warnings.append(f"there is no metaprompt {name!r}")
    if not sentiment.enabled:
        # Without sentiment there are no events; metaprompts by turn count still run.
        chosen = {id: each for id, each in chosen.items() if each.trigger.type == "turn_interval"}
    # One with the id of a preset replaces it.
    chosen |= {each.id: each for each in settings.metaprompts}
    return Effective(sentiment, tuple(chosen.values()), settings.model, tuple(warnings))


def merged(settings: ReflectionSettings, changes: Mapping[str, Any] | None) -> ReflectionSettings:
    """Returns the agent's settings with a conversation's changes applied."""
    if not changes:
        return settings
    given, changed = settings.model_dump(exclude_defaults=True), reflection_fields(changes)
    given.update(changed)
    if "profile" in changed and "sentiment" not in changed:
        # A change that names a profile replaces what the agent has instead of one.
        given.pop("sentiment", None)
    try:
        return ReflectionSettings.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidInput(f"{where}: {first['msg'].removeprefix('Value error, ')}.") from error


def find(settings: ReflectionSettings, by: Configuration, wanted: str | Metaprompt) -> Metaprompt:
    """Returns the metaprompt with this id from the settings or the configuration; a whole metaprompt is returned as it
    is.
    """
    if isinstance(wanted, Metaprompt):
        return wanted
    known = {**by.metaprompts, **{each.id: each for each in settings.metaprompts}}
    if wanted not in known:
        raise InvalidInput(f"Unknown metaprompt {wanted!r}. Known: {', '.join(known) or 'none'}.")
    return known[wanted]


def require_known(settings: ReflectionSettings, by: Configuration) -> None:
    """Raises `InvalidInput` if the settings name a profile or a metaprompt that does not exist."""
    if warnings := effective(settings, by).warnings:
        raise InvalidInput(f"reflection: {'; '.join(warnings)}.")


def require_classifier(settings: ReflectionSettings, by: Configuration, classifier: object | None) -> None:
    """Raises `InvalidInput` if the settings use a classifier for sentiment and there is none."""
    sentiment = effective(settings, by).sentiment
    if sentiment.enabled and sentiment.method == "trained_classifier" and classifier is None:
        raise InvalidInput(
            "reflection: the sentiment method trained_classifier needs a classifier, and there is none. "
            "Name a function with reflection.classifier in denizen.toml, or choose lexicon_based or llm."
        )
