"""The JSON of agents: definitions, and what others see of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    RootModel,
    ValidationError,
    field_validator,
    model_validator,
)

from denizen.agents.definition import AgentDefinition
from denizen.agents.documents import Handle, Name
from denizen.agents.files import plainly
from denizen.agents.fitness import Unable
from denizen.agents.registry import Agent, AgentListing, Life, Status
from denizen.agents.revising import shown
from denizen.clock import moment
from denizen.cycles.budgets import BudgetRest
from denizen.errors import InvalidInput
from denizen.files.attaching import MOST_FILES
from denizen.inbox.outside import NESTING, is_deep, storable_data
from denizen.server.shapes.filling import filled
from denizen.server.shapes.given import OutsideData, RequestBody
from denizen.shapes.agents import AgentDetail, AgentOut, AgentTrouble, ListedAgent, RestingOut
from denizen.shapes.examples import KITCHEN, body_example
from denizen.spaces.handles import check_name, handle_from

TRIGGER_CHARACTERS = 10_000


class CreateAgent(AgentDefinition):
    """A new agent: its name, and the fields of a definition (`docs/definitions.md`)."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"name": "Ada", "instructions": "You look after this house.", "model": "default", "spaces": [KITCHEN]}
            ]
        },
    )

    name: Annotated[Name, Field(description="The name.")]
    handle: Annotated[Handle | None, Field(description="By default derived from the name.")] = None
    spaces: Annotated[
        tuple[str, ...], Field(max_length=100, description="Ids of your spaces that it becomes a member of.")
    ] = ()

    @model_validator(mode="wrap")
    @classmethod
    def _in_our_words(cls, value: Any, check: ModelWrapValidatorHandler[CreateAgent]) -> CreateAgent:
        kept = _kept(value)
        try:
            return check(kept)
        except ValidationError as error:
            raise plainly(error, cls, kept) from None

    @property
    def chosen_handle(self) -> str:
        return self.handle or handle_from(self.name)

    @property
    def definition(self) -> AgentDefinition:
        return AgentDefinition.model_construct(**{name: getattr(self, name) for name in AgentDefinition.model_fields})


class EditAgent(RootModel[dict[str, JsonValue]]):
    """Its `name`, and fields of its definition: fields that are not sent stay, null resets a field to its default.

    A mapping such as `cycle` is changed by its keys; lists are replaced. With the `version` that you have seen, nothing
    is changed if there is a newer one.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"instructions": "You look after the garden.", "cycle": {"max_steps": 5}}]}
    )

    @field_validator("root")
    @classmethod
    def _can_be_kept(cls, root: dict[str, JsonValue]) -> JsonValue:
        return _kept(root)

    @property
    def name(self) -> str | None:
        """The new name, if one is sent."""
        if "handle" in self.root:
            raise InvalidInput("handle: it cannot be changed, because others use it to mention the agent.")
        name = self.root.get("name", "")
        if not isinstance(name, str):
            raise InvalidInput("name: it must be a text.")
        return name.strip() if "name" in self.root else None

    @property
    def fields(self) -> dict[str, JsonValue]:
        """The fields of the definition that are sent."""
        return {name: value for name, value in self.root.items() if name not in ("name", "version")}

    @property
    def version(self) -> int | None:
        """The version that the caller has seen, if it is sent: nothing is changed if there is a newer one."""
        version = self.root.get("version")
        if version is not None and (not isinstance(version, int) or isinstance(version, bool)):
            raise InvalidInput("version: it must be a whole number.")
        return version


def _kept(value: JsonValue) -> JsonValue:
    """Replaces what no database can hold by U+FFFD."""
    if is_deep(value):
        raise ValueError(f"nested deeper than {NESTING} levels")
    return storable_data(value)


def agent_trouble_out(unable: Unable | None) -> AgentTrouble | None:
    return None if unable is None else filled(AgentTrouble, unable)


def agent_out(agent: Agent, status: Status, unable: Unable | None = None) -> AgentOut:
    return AgentOut(
        id=agent.id,
        handle=agent.entity.handle,
        name=agent.name,
        status=status,
        model=agent.definition.model,
        purpose=agent.definition.purpose,
        trouble=agent_trouble_out(unable),
    )


def resting_out(resting: BudgetRest | None) -> RestingOut | None:
    if resting is None:
        return None
    return RestingOut(scope=resting.scope, until=None if resting.until is None else moment(resting.until))


def agent_detail_out(
    agent: Agent,
    status: Status,
    life: Life,
    resting: BudgetRest | None,
    *,
    with_definition: bool,
    unable: Unable | None = None,
) -> AgentDetail:
    return AgentDetail(
        **agent_out(agent, status, unable).model_dump(),
        created_at=moment(life.created_at),
        cycles=life.cycles,
        resting=resting_out(resting),
        version=agent.version,
        definition=shown(agent.definition) if with_definition else None,
    )


class TryAgain(RequestBody):
    """The space in which an agent tries again."""

    model_config = body_example(space=KITCHEN)

    space: Annotated[
        str | None, Field(description="A space that you and the agent are in; without it, everywhere (admins).")
    ] = None


def listed_agent_out(each: AgentListing, unable: Unable | None = None) -> ListedAgent:
    last = None if each.last_cycle_at is None else moment(each.last_cycle_at)
    return ListedAgent(**agent_out(each.agent, each.status, unable).model_dump(), last_cycle_at=last)


class ForkAgent(BaseModel):
    """A new agent with the history of another."""

    model_config = body_example(handle="ada-2", name="Ada the Second", at=7)

    handle: Annotated[Handle | None, Field(description="By default the handle of the other with a number.")] = None
    name: Annotated[Name | None, Field(description="By default the name of the other.")] = None
    at: Annotated[
        int | None, Field(ge=1, le=2**53, description="Copy the history up to this cycle; by default all of it.")
    ] = None


class TriggerAgent(BaseModel):
    """An event from outside, for one agent."""

    model_config = body_example(service="CI", text="The build failed.", data={"branch": "main", "run": 4711})

    service: Annotated[str, Field(description="The name of the service, as the agent sees it.")]
    text: Annotated[str, Field(max_length=TRIGGER_CHARACTERS, description="The event as text.")] = ""
    data: Annotated[OutsideData, Field(description="The event as data.")] = None
    files: Annotated[
        list[str],
        Field(
            max_length=MOST_FILES,
            description="Files that belong to it: ids of your finished uploads, or data URLs "
            "(`data:image/png;base64,…`).",
        ),
    ] = []
    id: Annotated[
        str | None,
        Field(
            min_length=1, max_length=200, description="The service's id of the event: the same id is delivered once."
        ),
    ] = None
    urgent: Annotated[bool, Field(description="The agent sees it at its next step instead of after its cycle.")] = False

    @field_validator("service")
    @classmethod
    def _has_a_name(cls, service: str) -> str:
        try:
            return check_name(service)
        except InvalidInput as error:
            raise ValueError(str(error)) from error
