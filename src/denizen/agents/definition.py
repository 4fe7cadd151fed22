"""The definition of an agent by its owner: validated at the border, stored in the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, TypedDict

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from denizen.consciousness.settings import WindowSettings
from denizen.cycles.budgets import BudgetSettings
from denizen.cycles.settings import CycleSettings
from denizen.errors import InvalidInput
from denizen.inbox.urgency import UrgentRule
from denizen.plans.settings import STORED, HeartbeatSettings, checked_zone, was_stored
from denizen.profiles.settings import ProfileSettings
from denizen.reflection.persona import as_definition
from denizen.reflection.settings import ReflectionSettings
from denizen.spaces.handles import check_handle
from denizen.tools.declaring import WILL_USE
from denizen.tools.settings import GuardSettings, McpServer, ToolSettings
from denizen.tools.skills import NAME, NAME_CHARACTERS, Skill
from denizen.trust.policy import EffectSettings

MOST_SKILLS: Final = 50
SkillName = Annotated[str, Field(pattern=NAME, max_length=NAME_CHARACTERS)]


class AgentSettings(TypedDict, total=False):
    """The fields of an `AgentDefinition` except model, instructions and tools, as keyword arguments of
    `denizen.agents.create`. Settings with parts of their own can be given as dictionaries."""

    purpose: str
    a2a: bool
    pays: str
    mcp: Mapping[str, McpServer | Mapping[str, Any]]
    skills: Mapping[str, Skill | Mapping[str, Any]]
    profile: Literal["auto", "normal", "small"]
    cycle: CycleSettings | Mapping[str, Any]
    window: WindowSettings | Mapping[str, Any]
    urgent: UrgentRule | Mapping[str, Any]
    zone: str
    heartbeat: HeartbeatSettings | Mapping[str, Any] | None
    budget: BudgetSettings | Mapping[str, Any] | None
    effects: EffectSettings | Mapping[str, Any]
    private_guard: GuardSettings | Mapping[str, Any]
    profiles: ProfileSettings | Mapping[str, Any]
    reflection: ReflectionSettings | Mapping[str, Any]


class AgentChanges(AgentSettings, total=False):
    """All fields of an `AgentDefinition`, as keyword arguments of `denizen.agents.edit`."""

    model: str
    instructions: str
    tools: Iterable[str | ToolSettings | Mapping[str, Any]]


class AgentDefinition(BaseModel):
    """Everything that makes this agent this agent, but for its name and its past."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(default="default", min_length=1)
    """`provider:name`, the name of a model registered with the runtime, or `default`: the default of the server."""
    pays: str = ""
    """Whose key its model is paid with: the `@handle` of a person; empty: the organization's, else the server's."""
    instructions: str = ""
    """Its role, in its owner's words."""
    purpose: str = Field(default="", max_length=200)
    """What it is for, in a line for the people who see it in lists. The agent itself does not read it."""
    a2a: bool = False
    """Whether it has a public A2A card (Agent2Agent): anybody can read its name and purpose there, and programs with an
    access token can give it tasks."""
    tools: tuple[str | ToolSettings, ...] = ()
    """What it has beside the tools of every agent: names of those registered with the runtime, and HTTP requests and
    questions to people that are defined here."""
    mcp: dict[str, McpServer] = Field(default_factory=dict[str, McpServer])
    """Servers of the Model Context Protocol whose tools it has, by a name for each."""
    skills: dict[SkillName, Skill] = Field(default_factory=dict[str, Skill], max_length=MOST_SKILLS)
    """Agent Skills by their names: it sees their descriptions, and reads their instructions when it needs them. In a
    definition file a text is a folder beside that file, with a `SKILL.md`."""
    profile: Literal["auto", "normal", "small"] = "auto"
    """`small`: a short self and only the tools to speak, skip, look back and set a timer, beside its own; for small
    models. `auto`: small where its model takes fewer than 16,000 tokens."""
    cycle: CycleSettings = CycleSettings()
    window: WindowSettings = WindowSettings()
    urgent: UrgentRule = UrgentRule()
    zone: str = "UTC"
    """Its time zone, such as `Europe/Berlin`: what it means by nine o'clock."""
    heartbeat: HeartbeatSettings | None = None
    """A regular waking, whether or not anything has happened."""
    budget: BudgetSettings | None = None
    """What it may use by the day and for life; None is no limit of its own."""
    effects: EffectSettings = EffectSettings()
    """What it may do outside the server by itself, and what a person has to approve."""
    private_guard: GuardSettings = GuardSettings()
    """The guard that keeps it from repeating in other spaces what was said in a private one."""
    profiles: ProfileSettings = ProfileSettings()
    """Which instructions are added to its own, conversation by conversation."""
    reflection: ReflectionSettings = ReflectionSettings()
    """How it thinks over its conversations between their turns."""

    @model_validator(mode="before")
    @classmethod
    def _may_be_a_persona(cls, given: Any) -> Any:
        return as_definition(given, has_handle="handle" in cls.model_fields)

    @field_validator("zone")
    @classmethod
    def _zone_exists(cls, zone: str, info: ValidationInfo) -> str:
        return zone if was_stored(info) else checked_zone(zone)

    @field_validator("pays")
    @classmethod
    def _pays_by_handle(cls, pays: str) -> str:
        try:
            return f"@{check_handle(pays)}" if pays else ""
        except InvalidInput as error:
            raise ValueError(str(error)) from error

    @field_validator("tools")
    @classmethod
    def _one_name_one_tool(cls, tools: tuple[str | ToolSettings, ...]) -> tuple[str | ToolSettings, ...]:
        from denizen.tools.prebuilt import PREBUILT

        taken = {WILL_USE, *(each.name for each in PREBUILT)}
        for each in tools:
            name = each if isinstance(each, str) else each.name
            if name in taken:
                raise ValueError(f"there is a tool {name!r} already: names must be unique")
            taken.add(name)
        return tools

    @classmethod
    def load(cls, stored: str) -> AgentDefinition:
        """The stored definition. A time zone that this machine does not know is kept: it was valid where it was stored,
        and an agent with an unknown time zone is still usable."""
        return cls.model_validate_json(stored, context=STORED)

    @model_validator(mode="after")
    def _fits(self) -> AgentDefinition:
        limit = self.window.max_tokens
        if len(self.instructions) // 4 > limit // 4:
            raise ValueError(
                f"instructions have {len(self.instructions):,} characters; a quarter of the window "
                f"(window.max_tokens = {limit:,}) holds about {limit:,}. Shorten them or enlarge the window"
            )
        return self


def changed_fields(before: AgentDefinition, after: AgentDefinition) -> list[str]:
    """The names of the fields in which the two differ."""
    return [name for name in AgentDefinition.model_fields if getattr(before, name) != getattr(after, name)]
