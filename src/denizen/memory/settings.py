"""The settings of memory: its part of the presets file, and the switches of a deployment. Pure.

A turn, in the file's words, is one message of the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from denizen.errors import SettingsError
from denizen.ids import OrganizationId
from denizen.memory.policy import Scope
from denizen.nearest import nearest
from denizen.storage.database import Tx
from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)

Presets = Callable[[], Mapping[str, JsonValue]]
"""Returns the present content of the presets file."""
OwnPresets = Callable[[Tx, OrganizationId], Mapping[str, JsonValue] | None]
"""Returns the presets of an organization's own, if it has some."""

T = TypeVar("T", bound=BaseModel)

PROMPT: Final = "memory_compactor_v2_json"
OFF: Final = "off"
STANDARD: Final = "standard"


def model_name(given: str) -> str:
    """Returns the name of a model in our form: some write a slash."""
    return given if ":" in given else given.replace("/", ":", 1)


class _Part(BaseModel):
    # Other fields belong to other parts: they are ignored.
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class CompactionProfile(_Part):
    """When a conversation is summarized, how much at a time, and with which model."""

    enabled: bool = True
    cooldown_ms: int = Field(default=60_000, ge=0, alias="cooldownMs")
    """The least time between two passes in milliseconds."""
    tail_turns: int = Field(default=12, ge=0, le=10_000, alias="tailTurnsToKeep")
    """The newest messages, which are never summarized but shown as they are."""
    min_turns: int = Field(default=12, ge=1, le=10_000, alias="minTurnsToSummarize")
    """The fewest messages that are worth a pass."""
    max_turns: int = Field(default=48, ge=1, le=1_000, alias="maxTurnsToSummarizePerPass")
    max_summary_tokens: int = Field(default=900, ge=100, le=20_000, alias="maxSummaryTokens")
    """The limit of the summary and the memory together."""
    model: Annotated[str, AfterValidator(model_name)] = Field(default="default", min_length=1, alias="modelId")
    """The utility model, named like an agent's model; `openai/gpt-5-mini` is `openai:gpt-5-mini`."""
    prompt: str = Field(default=PROMPT, min_length=1, alias="promptKey")


class Compaction(_Part):
    """The profiles, and which one applies."""

    profiles: dict[str, CompactionProfile] = Field(default_factory=dict[str, CompactionProfile])
    default_profile: str = Field(default=STANDARD, alias="defaultProfile")
    by_mode: dict[str, str] = Field(default_factory=dict[str, str], alias="defaultProfileByMode")

    def named(self, name: str) -> CompactionProfile:
        return self.profiles.get(name) or _BUILT_IN[name]

    def profile_for(self, modes: Iterable[str]) -> tuple[str, CompactionProfile]:
        """Returns the profile, with its name, for a conversation of these modes: an exact name first, then a part of
        one.
        """
        wanted = list(modes)
        for mode in wanted:
            if mode in self.by_mode:
                return self.by_mode[mode], self.named(self.by_mode[mode])
        for mode in wanted:
            for key, name in self.by_mode.items():
                if key and key in mode:
                    return name, self.named(name)
        return self.default_profile, self.named(self.default_profile)


_BUILT_IN: Final = {OFF: CompactionProfile(enabled=False), STANDARD: CompactionProfile()}


class Routing(_Part):
    """The part of prompt profile routing that memory uses: the interval of reviews."""

    every_turns: int = Field(default=6, ge=0, alias="reviewEveryNTurns")
    """Turns; 0: never."""
    on_compaction: bool = Field(default=True, alias="forceReviewOnCompaction")


_TOP_K: Final[dict[Scope, int]] = {"conversation": 4, "user": 6, "persona": 6, "organization": 6}


def _of_every_scope(given: dict[Scope, int]) -> dict[Scope, int]:
    return {**_TOP_K, **given}


class LongTerm(_Part):
    """How much is recalled at once."""

    enabled: bool = True
    top_k: Annotated[dict[Scope, Annotated[int, Field(ge=0, le=60)]], AfterValidator(_of_every_scope)] = Field(
        default=_TOP_K, alias="topKByScope"
    )
    """The most memories of each scope; a scope that is not named has its default."""
    max_characters: int = Field(default=2_800, ge=200, le=40_000, alias="maxCharacters")


class Switches(BaseModel, frozen=True, extra="forbid"):
    """Settings of a deployment for all profiles, by `MEMORY_COMPACTION_*`. The profile decides what is not set."""

    enabled: bool | None = None
    prompt_key: str | None = None
    model_id: str | None = None
    cooldown_ms: int | None = Field(default=None, ge=0)
    tail_turns: int | None = Field(default=None, ge=0)
    min_turns: int | None = Field(default=None, ge=1)
    max_turns_per_pass: int | None = Field(default=None, ge=1)
    max_summary_tokens: int | None = Field(default=None, ge=100)

    def applied(self, profile: CompactionProfile) -> CompactionProfile:
        """Returns the profile with these switches applied. A switch that is on does not turn on a profile
        that is off.
        """
        given = {
            "prompt": self.prompt_key,
            "model": None if self.model_id is None else model_name(self.model_id),
            "cooldown_ms": self.cooldown_ms,
            "tail_turns": self.tail_turns,
            "min_turns": self.min_turns,
            "max_turns": self.max_turns_per_pass,
            "max_summary_tokens": self.max_summary_tokens,
        }
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        return profile.model_copy(update={**changes, "enabled": profile.enabled and self.enabled is not False})


@dataclass(frozen=True, slots=True)
class ParsedSettings:
    """The parsed settings."""

    compaction: Compaction
    routing: Routing
    long_term: LongTerm
    warnings: tuple[str, ...] = ()
    """Names that are nearly ours: probably typing errors."""


def read(presets: Mapping[str, JsonValue]) -> ParsedSettings:
    """Parses the memory part of the presets. Raises `SettingsError` that says where it is wrong."""
    compaction = _part(presets, "memoryCompaction", Compaction)
    for name in [compaction.default_profile, *compaction.by_mode.values()]:
        if name not in compaction.profiles and name not in _BUILT_IN:
            known = ", ".join(dict.fromkeys([*_BUILT_IN, *compaction.profiles]))
            raise SettingsError(f"memoryCompaction: there is no profile {name!r}; there is {known}.")
    return ParsedSettings(
        compaction,
        _part(presets, "routing", Routing),
        _part(presets, "longTermMemory", LongTerm),
        tuple(_near_misses(presets)),
    )


def _part(presets: Mapping[str, JsonValue], key: str, shape: type[T]) -> T:
    try:
        return shape.model_validate(presets.get(key) or {})
    except ValidationError as error:
        said = [
            f"{'.'.join(map(str, (key, *each['loc'])))}: {each['msg']}"
            for each in error.errors(include_url=False, include_input=False)
        ]
        raise SettingsError(*said) from error


def _near_misses(presets: Mapping[str, JsonValue]) -> Iterable[str]:
    long_term, found = presets.get("longTermMemory"), presets.get("memoryCompaction")
    if isinstance(long_term, dict):
        yield from _unlike("longTermMemory", long_term, LongTerm)
    if not isinstance(found, dict):
        return
    yield from _unlike("memoryCompaction", found, Compaction)
    profiles = found.get("profiles")
    for name, profile in cast("dict[str, Any]", profiles if isinstance(profiles, dict) else {}).items():
        yield from _unlike(f"memoryCompaction.profiles.{name}", profile, CompactionProfile)


def _unlike(where: str, given: Mapping[str, Any], shape: type[BaseModel]) -> Iterable[str]:
    known = [field.alias or name for name, field in shape.model_fields.items()]
    for name in given:
        if name in known or name in shape.model_fields:
            continue
        near = nearest(name, known, cutoff=0.8)
        if near:
            yield f"{where}.{name} is not known, and ignored: did you mean {near[0]}?"


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """The options of memory for a runtime."""

    presets: Presets = dict
    """Returns the content of the presets file; by default nothing, so that everything has its default."""
    switches: Switches = field(default_factory=Switches)
    sink: str | None = None
    """`module:name` of a function that is called with the database and the embedder and returns a `Sink`;
    None: ours.
    """
    retriever: str | None = None
    prompts: Path | None = None
    """The folder with the operator's own prompts for summaries."""


class Configuration:
    """The present settings: the presets, read again when they change, with the switches applied."""

    def __init__(
        self, presets: Presets = dict, switches: Switches | None = None, own: OwnPresets | None = None
    ) -> None:
        self._presets = presets
        self._own = own
        self._switches = switches or Switches()
        self._from: Mapping[str, JsonValue] | None = None
        self._read = read({})

    def now(self) -> ParsedSettings:
        """Returns the present settings; the last valid ones if the presets are invalid. Raises if they never were
        valid.
        """
        found = self._presets()
        if found is not self._from:
            first, self._from = self._from is None, found
            try:
                self._read = read(found)
            except SettingsError as error:
                if first:
                    raise
                log_line.warning("presets not read: what they said before holds", problem=str(error))
        return self._read

    def profiles(self) -> list[CompactionProfile]:
        """Returns all profiles by which conversations may be summarized here."""
        compaction = self.now().compaction
        named = [compaction.named(compaction.default_profile), *compaction.profiles.values()]
        return [self._switches.applied(each) for each in named]

    def profile(
        self, modes: Iterable[str], own: Mapping[str, JsonValue] | None = None
    ) -> tuple[str, CompactionProfile]:
        """Returns the profile for a conversation of these modes, and its name; that of the organization's `own` presets
        if they have profiles.
        """
        compaction = self.now().compaction
        if own is not None and "memoryCompaction" in own:
            compaction = read(own).compaction
        name, profile = compaction.profile_for(modes)
        return name, self._switches.applied(profile)

    def own_presets(self, tx: Tx, organization_id: OrganizationId) -> Mapping[str, JsonValue] | None:
        """Returns the presets of the organization's own, if it has some."""
        return None if self._own is None else self._own(tx, organization_id)
