"""The documents of a definition file: an agent and what it starts with, a space, a person or a bridge. Pure.

An agent's document has every field of its definition, so that what a definition can say, a file can say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, time
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, TypeAlias, cast, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic_core import to_jsonable_python

from denizen.agents.definition import AgentDefinition
from denizen.errors import InvalidInput
from denizen.inbox.format import one_line
from denizen.plans.agenda import INSTRUCTION_CHARACTERS, NAME_CHARACTERS, When
from denizen.plans.goals import GOAL_CHARACTERS, GoalStatus, Priority
from denizen.plans.limits import checked_text
from denizen.plans.notes import KEY_CHARACTERS, NOTE_CHARACTERS
from denizen.plans.schedule import cron, delay_seconds
from denizen.plans.settings import checked_zone
from denizen.spaces.directory import LARGEST_RUN_LIMIT, Attention, Floor
from denizen.spaces.handles import check_handle, check_name, handle_from

Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"
"""What YAML and JSON can say."""


def _as_value_error(check: Callable[[str], str]) -> Callable[[str], str]:
    """For validators: our own check, with an error that pydantic gathers with the others."""

    def checked(text: str) -> str:
        try:
            return check(text)
        except InvalidInput as error:
            raise ValueError(str(error).rstrip(".")) from error

    return checked


def _text(what: str, most: int) -> AfterValidator:
    return AfterValidator(_as_value_error(lambda text: checked_text(what, text, most)))


def _line(what: str, most: int) -> AfterValidator:
    return AfterValidator(_as_value_error(lambda text: checked_text(what, one_line(text), most)))


def _short_for(key: str) -> BeforeValidator:
    """A text alone stands for the mapping that has only this key."""
    return BeforeValidator(lambda given: {key: given} if isinstance(given, str) else given)


Name = Annotated[str, AfterValidator(_as_value_error(check_name))]
Handle = Annotated[str, AfterValidator(_as_value_error(check_handle))]


def _handle_of_name(given: Mapping[str, Any]) -> str:
    return handle_from(given.get("name", ""))


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AgentSpace(_Document):
    """A space that an agent is in. A text alone is its name."""

    name: Name
    """The space of that name. If there is none, it is created with the agent and the person who applies the file."""
    attention: Attention | None = None
    """Which of its messages reach the agent: `all`, `mentions` or `none`. New members get `all`."""


class Aim(_Document):
    """A goal. A text alone is its text."""

    text: Annotated[str, _text("The text of a goal", GOAL_CHARACTERS)]
    """By its text a goal is known: another text is another goal."""
    status: GoalStatus | None = None
    """`active` (default for a new one), `long-term`, `paused` or `done`."""
    priority: Priority | None = None
    """`high`, `normal` (default for a new one) or `low`."""


class Intent(_Document):
    """A plan: when the agent is woken, and what it is told then."""

    name: Annotated[str, _line("The name of a plan", NAME_CHARACTERS)]
    instruction: Annotated[str, _text("The instruction of a plan", INSTRUCTION_CHARACTERS)]
    """What the agent is told."""
    cron: str | None = None
    """Again and again: minute, hour, day of month, month, day of week."""
    at: str | None = None
    """Once, at a time in ISO 8601. If that is past, nothing is planned."""
    after: str | None = None
    """Once, so long after the file was applied: `2 hours`. While the plan waits, applying again changes nothing."""
    zone: str | None = None
    """The time zone of `cron` and `at`. By default that of the agent."""

    @field_validator("at")
    @classmethod
    def _is_a_time(cls, at: str | None) -> str | None:
        try:
            return at if at is None else datetime.fromisoformat(at.strip()) and at
        except ValueError as error:
            raise ValueError(f'{at!r} is not a time. Use ISO 8601, such as "2026-02-19T09:00"') from error

    @field_validator("zone")
    @classmethod
    def _zone_exists(cls, zone: str | None) -> str | None:
        return None if zone is None else checked_zone(zone)

    @model_validator(mode="after")
    def _is_a_schedule(self) -> Intent:
        given = [key for key in ("cron", "at", "after") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(f"use exactly one of cron, at or after; {' and '.join(given) or 'none'} is given")
        try:
            if self.cron is not None:
                cron(self.cron, self.zone or "UTC")
            elif self.after is not None:
                delay_seconds(self.after)
        except InvalidInput as error:
            raise ValueError(str(error).rstrip(".")) from error
        return self

    @property
    def when(self) -> When:
        return When(self.cron, self.at, self.after, self.zone)


class AgentDocument(AgentDefinition):
    """An agent, whole: what is not given has its default."""

    kind: Literal["agent"] = "agent"
    name: Name
    """What it is called."""
    handle: Handle = Field(default_factory=_handle_of_name)
    """By which it is known in this organization, and mentioned. By default made from the name."""
    instructions_file: str | None = None
    """A file beside this one whose text are the instructions."""
    spaces: tuple[Annotated[AgentSpace, _short_for("name")], ...] = ()
    """Where it is. Spaces that are not named are not left."""
    goals: tuple[Annotated[Aim, _short_for("text")], ...] = ()
    """What it is to achieve. Goals that are not named stay as they are."""
    notes: dict[
        Annotated[str, _line("The key of a note", KEY_CHARACTERS)], Annotated[str, _text("A note", NOTE_CHARACTERS)]
    ] = Field(default_factory=dict[str, str])
    """What it has always before its eyes, under keys. Notes that are not named stay as they are."""
    plans: tuple[Intent, ...] = ()
    """When it is woken. Plans that are not named stay as they are."""

    @model_validator(mode="after")
    def _named_once(self) -> AgentDocument:
        for key, names in {
            "spaces": [place.name for place in self.spaces],
            "goals": [aim.text for aim in self.goals],
            "plans": [intent.name for intent in self.plans],
        }.items():
            if twice := next((name for index, name in enumerate(names) if name in names[:index]), None):
                raise ValueError(f"{key}: {twice!r} appears twice")
        return self

    @property
    def definition(self) -> AgentDefinition:
        return AgentDefinition.model_construct(**{name: getattr(self, name) for name in AgentDefinition.model_fields})


class Guest(_Document):
    """A member of a space. A text alone is the handle."""

    handle: Handle
    attention: Attention | None = None
    """Which of its messages reach the member: `all`, `mentions` or `none`. New members get `all`."""


class SpaceDocument(_Document):
    """A space, and who is in it."""

    kind: Literal["space"]
    name: Name
    """By its name a space is known."""
    private: bool | None = None
    """Whether others may know that it exists. By default no for a new one."""
    floor: Floor | None = None
    """Which agents take up what is said in it, where there are several: `one`, `addressed` or `all`. By default `one`
    for a new space."""
    agent_run_limit: int | None = Field(default=None, ge=0, le=LARGEST_RUN_LIMIT)
    """After so many messages with which agents woke each other in it, they stop until a person speaks; 0: no limit. By
    default 12 for a new space."""
    members: tuple[Annotated[Guest, _short_for("handle")], ...] = ()
    """Who is in it. Members that are not named stay."""


class PersonDocument(_Document):
    """A person."""

    kind: Literal["person"]
    name: Name
    """What they are called."""
    handle: Handle = Field(default_factory=_handle_of_name)
    """By which they are known in this organization, and mentioned. By default made from the name."""


class ChannelDocument(_Document):
    """A room elsewhere, and the space that it is connected with."""

    room: str = Field(min_length=1, max_length=255)
    """Its id there; of a mailbox, the folder."""
    space: Name
    """The name of the space, which is made if there is none."""


class BridgeDocument(_Document):
    """A bridge to a service elsewhere."""

    kind: Literal["bridge"]
    name: Name
    """The name of its member in spaces."""
    handle: Handle = Field(default_factory=_handle_of_name)
    """By which it is known in this organization. By default made from the name."""
    service: str
    """The kind of bridge: `email`, `matrix` …"""
    settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Its settings, as `bridges.md` tells them for each kind. All of them: what is left out has its default."""
    channels: tuple[ChannelDocument, ...] = ()
    """The rooms that are connected. Those that are not named stay."""


Document = AgentDocument | SpaceDocument | PersonDocument | BridgeDocument
KINDS: Final[Mapping[str, type[AgentDocument] | type[SpaceDocument] | type[PersonDocument] | type[BridgeDocument]]] = {
    "agent": AgentDocument,
    "space": SpaceDocument,
    "person": PersonDocument,
    "bridge": BridgeDocument,
}


def plain(value: object, *, whole: bool = False) -> Plain:
    """The value as a file would say it: without what has its default, unless it is wanted whole."""
    match value:
        case BaseModel():
            given = {name: each for name, each in value if whole or not _is_default(value, name)}
            given = {name: given[name] for name in sorted(given, key=lambda name: name != "kind")}
            return {name: plain(each, whole=whole) for name, each in given.items()}
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            number = int(value) if value == int(value) else float(value)
            return number if Decimal(str(number)) == value else str(value)
        case time():
            return value.isoformat("minutes" if not value.second and not value.microsecond else "auto")
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {str(key): plain(each, whole=whole) for key, each in items}
        case Sequence():
            return [plain(each, whole=whole) for each in cast("Sequence[object]", value)]
        case _:
            return cast("Plain", to_jsonable_python(value))


def _is_default(model: BaseModel, name: str) -> bool:
    field = type(model).model_fields[name]
    if name == "kind" and get_origin(field.annotation) is Literal:
        return False  # its kind distinguishes it from others
    default = field.get_default(call_default_factory=True, validated_data=dict(model))
    return bool(getattr(model, name) == default)
