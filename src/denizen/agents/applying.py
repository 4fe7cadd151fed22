"""Applies definition documents, all of them or none; and writes an agent as a document.

What a file does not name is left alone. What already matches is not touched: no new version, no new era.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NoReturn

from pydantic import JsonValue
from sqlalchemy import bindparam, select

from denizen.access import audit
from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.agents import registry
from denizen.agents.definition import AgentDefinition
from denizen.agents.differences import Change, FieldChange, difference
from denizen.agents.documents import (
    AgentDocument,
    AgentSpace,
    Aim,
    BridgeDocument,
    Document,
    Intent,
    PersonDocument,
    SpaceDocument,
)
from denizen.agents.files import Declared
from denizen.agents.registry import Agent
from denizen.agents.restrictions import DefinitionPolicy
from denizen.clock import SECOND, instant, moment
from denizen.consciousness import privacy
from denizen.errors import DefinitionsInvalid, InvalidInput, NotFound
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId
from denizen.masking import masked
from denizen.plans import admin_changes, agenda, goals, notes
from denizen.plans.agenda import Plan, PlanDraft
from denizen.plans.goals import Goal, GoalChange
from denizen.plans.schedule import Cron, Heartbeat, Once, describe, named_zone
from denizen.spaces import directory
from denizen.spaces.directory import Attention, Entity, EntityKind, Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import organizations

_UNDEFINED: Final = AgentDefinition()
"""An agent definition with all defaults."""

_one_at_a_time = statement(
    # The database does not keep names of spaces unique: two people who create the same one at once would get two.
    select(organizations.c.id).where(organizations.c.id == bindparam("id")).with_for_update(key_share=True)
)


ApplyBridge = Callable[[Tx, Requester, OrganizationId, BridgeDocument, Mapping[str, SpaceId]], Change]
"""Makes a bridge as its document says; the spaces that it names are given. Bridges are further out than agents."""


class ApplyRehearsed(Exception):
    """Everything was applied, and is rolled back."""

    def __init__(self, changes: list[Change]) -> None:
        self.changes = changes
        super().__init__("rehearsed")


def apply(
    tx: Tx,
    by: Requester,
    policy: DefinitionPolicy,
    organization_id: OrganizationId,
    declared: Sequence[Declared],
    creator: EntityId | None = None,
    apply_bridge: ApplyBridge | None = None,
) -> list[Change]:
    """Apply the documents. Returns the changes in their order; raises `DefinitionsInvalid` with all problems.

    For admins, who change only spaces that they are in; this process changes every space. The `creator` becomes a
    member of every space that is created here. Raises `NotAllowed` if the policy refuses a definition.
    """
    by.require("admin")
    by.require_organization(organization_id)
    tx.one(_one_at_a_time, id=organization_id)
    work = _Work(tx, by, policy.for_requester(tx, by), organization_id, creator, apply_bridge)
    order = list(_FIRST)  # members of spaces come before the spaces, and spaces before their later members
    for each in sorted(declared, key=lambda each: order.index(type(each.document))):
        work.attempt(each, _FIRST[type(each.document)])
    for each in declared:
        if isinstance(each.document, AgentDocument) and each.place not in work.failed:
            work.attempt(each, _settle)
    if work.problems:
        raise DefinitionsInvalid(*work.problems)
    found = [change for each in declared for change in work.made[each.place].changes()]
    changed = [each for each in found if each.action != "unchanged"]
    if changed:
        named: list[JsonValue] = [each.name for each in changed if each.kind == "agent"]
        audit.record(tx, organization_id, by.actor, "apply", changes=len(changed), agents=named)
    return found


def definition_of(tx: Tx, organization_id: OrganizationId, handle: str) -> AgentDefinition | None:
    """The current definition of the agent with that handle; None if there is no such agent."""
    try:
        return registry.get(tx, AgentId(directory.find_entity(tx, organization_id, handle).id)).definition
    except NotFound:
        return None


def rehearse(
    tx: Tx,
    by: Requester,
    policy: DefinitionPolicy,
    organization_id: OrganizationId,
    declared: Sequence[Declared],
    creator: EntityId | None = None,
    apply_bridge: ApplyBridge | None = None,
) -> NoReturn:
    """Apply, and roll back by raising `ApplyRehearsed` with the changes."""
    raise ApplyRehearsed(apply(tx, by, policy, organization_id, declared, creator, apply_bridge))


@dataclass(slots=True)
class _AppliedDocument:
    """The result of a document so far."""

    change: Change
    fields: list[FieldChange]
    entity_id: str = ""
    spaces: list[Change] = field(default_factory=list[Change])
    """Spaces that were created because the document names them."""

    def changes(self) -> list[Change]:
        done = self.change
        action = "changed" if self.fields and done.action == "unchanged" else done.action
        return [*self.spaces, Change(done.kind, done.name, action, tuple(self.fields))]


class _Work:
    """One run of `apply`: its results and problems so far."""

    def __init__(
        self,
        tx: Tx,
        by: Requester,
        policy: DefinitionPolicy,
        organization_id: OrganizationId,
        creator: EntityId | None,
        apply_bridge: ApplyBridge | None,
    ) -> None:
        self.tx = tx
        self.apply_bridge = apply_bridge
        self.by = by
        self.policy = policy
        self.organization_id = organization_id
        self.creator = creator
        self.made: dict[str, _AppliedDocument] = {}
        """By the position of the document."""
        self.problems: list[str] = []
        self.failed: set[str] = set()

    def attempt(self, declared: Declared, do: Callable[[_Work, Declared], None]) -> None:
        try:
            do(self, declared)
        except (InvalidInput, NotFound) as error:
            self.failed.add(declared.place)
            self.problems.append(f"{declared.place}: {error}")

    def find(self, handle: str, kind: EntityKind) -> Entity | None:
        """The entity with this handle; raises `InvalidInput` if it is of another kind."""
        try:
            found = directory.find_entity(self.tx, self.organization_id, handle)
        except NotFound:
            return None
        if found.kind != kind:
            raise InvalidInput(f"The handle @{handle} is taken: its owner's kind is {found.kind}. Choose another.")
        return found

    def space(self, name: str, **settings: Any) -> tuple[Space, bool]:
        """The space with that name, and whether it was just created."""
        found = self._visible(directory.find_spaces(self.tx, self.organization_id, name))
        if len(found) > 1:
            raise InvalidInput(
                f"There are {len(found)} spaces named {name!r}. Rename all but one, because a file refers to spaces "
                "by name."
            )
        if found:
            if not self._is_in(found[0]):
                raise InvalidInput(f"The name {name!r} is taken by a space that you are not in. Choose another.")
            return found[0], False
        made = directory.create_space(self.tx, self.organization_id, name=name, **settings)
        if self.creator is not None:
            directory.join(self.tx, made.id, self.creator)
        return made, True

    def _visible(self, spaces: Sequence[Space]) -> Sequence[Space]:
        """The spaces that the requester can mean: their own; if there are none, those that are not private."""
        own = [each for each in spaces if self._is_in(each)]
        return own or [each for each in spaces if not each.private]

    def _is_in(self, space: Space) -> bool:
        return self.by == THIS_PROCESS or directory.is_member(self.tx, space.id, self.by.entity_id)

    def member(self, space_id: SpaceId, entity_id: EntityId, attention: Attention | None) -> FieldChange | None:
        """Add the entity to the space, with this attention if one is given."""
        there = {each.entity.id: each for each in directory.members(self.tx, space_id)}
        known = there.get(entity_id)
        old = None if known is None else known.attention
        new: Attention = attention or old or "all"
        if old == new:
            return None
        if known is None:
            directory.join(self.tx, space_id, entity_id, attention=new)
        else:
            if self.by != THIS_PROCESS and known.entity.kind == "human" and entity_id != self.by.entity_id:
                raise InvalidInput(f"Only {known.entity.name} can change which messages {known.entity.name} gets.")
            directory.attend(self.tx, space_id, entity_id, new)
        return FieldChange("", old, new)


def _person(work: _Work, declared: Declared) -> None:
    document = declared.document
    assert isinstance(document, PersonDocument)
    found = work.find(document.handle, "human")
    if found is None:
        made = directory.create_entity(
            work.tx, work.organization_id, "human", name=document.name, handle=document.handle
        )
        change = Change("person", document.handle, "created")
        work.made[declared.place] = _AppliedDocument(change, [FieldChange("name", None, document.name)], made.id)
        return
    work.made[declared.place] = _AppliedDocument(
        Change("person", document.handle, "unchanged"), _renamed(work.tx, found, document.name), found.id
    )


def _renamed(tx: Tx, entity: Entity, name: str) -> list[FieldChange]:
    if entity.name == name:
        return []
    directory.rename(tx, entity.id, name)
    return [FieldChange("name", entity.name, name)]


def _agent(work: _Work, declared: Declared) -> None:
    document = declared.document
    assert isinstance(document, AgentDocument)
    found, definition = work.find(document.handle, "agent"), document.definition
    if found is None:
        made = registry.create(
            work.tx,
            work.policy,
            work.organization_id,
            name=document.name,
            handle=document.handle,
            definition=definition,
        )
        fields = [FieldChange("name", None, document.name), *difference(_UNDEFINED, definition)]
        work.made[declared.place] = _AppliedDocument(Change("agent", document.handle, "created"), fields, made.id)
        return
    if registry.status(work.tx, found.id) == "dead":
        raise InvalidInput(f"The agent @{document.handle} was deleted. Choose another handle.")
    fields = _redefined(work, registry.get(work.tx, found.id), document.name, definition)
    work.made[declared.place] = _AppliedDocument(Change("agent", document.handle, "unchanged"), fields, found.id)


def _redefined(work: _Work, agent: Agent, name: str, definition: AgentDefinition) -> list[FieldChange]:
    fields = _renamed(work.tx, agent.entity, name) + difference(agent.definition, definition)
    if fields:
        registry.edit(work.tx, work.policy, agent.id, definition)
    return fields


def _space(work: _Work, declared: Declared) -> None:
    document = declared.document
    assert isinstance(document, SpaceDocument)
    wanted = document.model_dump(include={"private", "floor", "agent_run_limit"}, exclude_none=True)
    space, is_new = work.space(document.name, **wanted)
    old = {"private": False} if is_new else {name: getattr(space, name) for name in wanted}
    fields = [
        FieldChange(name, None if is_new else old[name], value)
        for name, value in wanted.items()
        if value != old.get(name)
    ]
    directory.change_space(work.tx, space.id, **wanted)
    for guest in document.members:
        entity = _find_anyone(work, guest.handle)
        change = work.member(space.id, entity.id, guest.attention)
        if change is not None:
            fields.append(FieldChange(f"members.{guest.handle}", change.old, change.new))
    work.made[declared.place] = _AppliedDocument(
        Change("space", document.name, "created" if is_new else "unchanged"), fields, space.id
    )


def _find_anyone(work: _Work, handle: str) -> Entity:
    try:
        return directory.find_entity(work.tx, work.organization_id, handle)
    except NotFound as error:
        raise InvalidInput(f"members: {error} Define it in a document of its own if it is new.") from error


def _bridge(work: _Work, declared: Declared) -> None:
    document = declared.document
    assert isinstance(document, BridgeDocument)
    if work.apply_bridge is None:
        raise InvalidInput("There are no bridges here.")
    made = {each.space: work.space(each.space) for each in document.channels}
    there = {name: space.id for name, (space, _) in made.items()}
    change = work.apply_bridge(work.tx, work.by, work.organization_id, document, there)
    created = [Change("space", name, "created") for name, (_, is_new) in made.items() if is_new]
    work.made[declared.place] = _AppliedDocument(change, list(change.fields), spaces=created)


_FIRST: Final[Mapping[type[Document], Callable[[_Work, Declared], None]]] = {
    PersonDocument: _person,
    AgentDocument: _agent,
    SpaceDocument: _space,
    BridgeDocument: _bridge,
}


def _settle(work: _Work, declared: Declared) -> None:
    """Set the agent's spaces, goals, notes and plans as its document says."""
    document, made = declared.document, work.made[declared.place]
    assert isinstance(document, AgentDocument)
    agent_id = AgentId(made.entity_id)
    for place in document.spaces:
        _be_in(work, made, place)
    made.fields += _aim(work.tx, work.by, agent_id, document.goals)
    made.fields += _note(work.tx, work.by, agent_id, document)
    made.fields += _plan(work.tx, work.by, agent_id, document)


def _be_in(work: _Work, made: _AppliedDocument, place: AgentSpace) -> None:
    space, is_new = work.space(place.name)
    if is_new:
        made.spaces.append(Change("space", space.name, "created"))
    change = work.member(space.id, EntityId(made.entity_id), place.attention)
    if change is not None:
        made.fields.append(FieldChange(f"spaces.{space.name}", change.old, change.new))


def _aim(tx: Tx, by: Requester, agent_id: AgentId, aims: Sequence[Aim]) -> list[FieldChange]:
    there = {goal.text: goal for goal in goals.goals_of(tx, agent_id)}
    fields: list[FieldChange] = []
    for aim in aims:
        old = there.get(aim.text)
        wanted = (aim.status or (old.status if old else "active"), aim.priority or (old.priority if old else "normal"))
        if old is not None and wanted == (old.status, old.priority):
            continue
        change = GoalChange(old.number if old else None, None if old else aim.text, *wanted)
        new = admin_changes.set_goal(tx, by, agent_id, change)
        fields.append(FieldChange(f"goals.{masked(aim.text)}", _standing(old), _standing(new)))
    return fields


def _standing(goal: Goal | None) -> str | None:
    return None if goal is None else f"{goal.status}, {goal.priority} priority"


def _note(tx: Tx, by: Requester, agent_id: AgentId, document: AgentDocument) -> list[FieldChange]:
    hidden = privacy.reader(tx, agent_id, by.actor.entity_id).hidden_facts()
    there = {note.key: note.text for note in notes.notes_of(tx, agent_id)}
    fields: list[FieldChange] = []
    for key, text in document.notes.items():
        if there.get(key) != text:
            admin_changes.set_note(tx, by, agent_id, key, text)
            old = privacy.stand_in(1) if f"note:{key}" in hidden else there.get(key)
            fields.append(FieldChange(f"notes.{key}", None if old is None else masked(old), masked(text)))
    return fields


def _plan(tx: Tx, by: Requester, agent_id: AgentId, document: AgentDocument) -> list[FieldChange]:
    there = {plan.name: plan for plan in agenda.plans_of(tx, agent_id) if plan.kind == "plan"}
    fields: list[FieldChange] = []
    for intent in document.plans:
        old = there.get(intent.name)
        if _is_past(tx, intent, document.zone) or (old is not None and _is_as_meant(tx, old, intent, document.zone)):
            continue
        new = admin_changes.set_plan(tx, by, agent_id, PlanDraft(intent.name, intent.instruction, intent.when))
        fields.append(FieldChange(f"plans.{intent.name}", _in_words(old), _in_words(new)))
    return fields


def _is_past(tx: Tx, intent: Intent, home: str) -> bool:
    """Whether the plan runs once and that time has passed: a file keeps plans that are over."""
    if intent.at is None:
        return False
    at = datetime.fromisoformat(intent.at.strip())
    return instant(at if at.tzinfo else at.replace(tzinfo=named_zone(intent.zone or home))) <= tx.now


def _is_as_meant(tx: Tx, plan: Plan, intent: Intent, home: str) -> bool:
    if plan.instruction != intent.instruction or plan.state == "failed":
        return False
    if intent.after is not None:
        return isinstance(plan.schedule, Once)  # counted from when it was first applied
    wanted = intent.when.schedule(home, tx.now)
    if isinstance(wanted, Once) and isinstance(plan.schedule, Once) and wanted.zone == plan.schedule.zone:
        return abs(wanted.at - plan.schedule.at) < SECOND  # files give times to the second
    return plan.schedule == wanted


def _in_words(plan: Plan | None) -> str | None:
    return None if plan is None else f"{describe(plan.schedule)}: {masked(plan.instruction)}"


def missing_tools(declared: Sequence[Declared], known: Container[str]) -> list[str]:
    """Warnings about tools that agents name and this server lacks: another server on this database may have them."""
    found: list[str] = []
    for each in declared:
        tools = each.document.tools if isinstance(each.document, AgentDocument) else ()
        missing = [repr(tool) for tool in tools if isinstance(tool, str) and tool not in known]
        if missing:
            found.append(
                f"{each.place}: no tool {' or '.join(missing)} is loaded here. Until `denizen up` has it "
                "(DENIZEN_TOOLS), this agent does not think."
            )
    return found


# An agent as a document


def document_of(tx: Tx, organization_id: OrganizationId, handle: str, person: EntityId | None = None) -> AgentDocument:
    """The agent as a document: definition, spaces, goals, notes and plans, but not its timers.

    Leaves out what this person may not read; None is the person who runs the server, who may read everything.
    """
    entity = directory.find_entity(tx, organization_id, handle)
    if entity.kind != "agent" or registry.status(tx, entity.id) == "dead":
        raise NotFound("living agent", handle)
    agent = registry.get(tx, entity.id)
    reader = privacy.reader(tx, agent.id, person)
    hidden = reader.hidden_facts()
    return AgentDocument(
        **{name: getattr(agent.definition, name) for name in AgentDefinition.model_fields},
        name=entity.name,
        handle=entity.handle,
        spaces=tuple(
            _place(tx, space, agent.id)
            for space in directory.spaces_of(tx, agent.id)
            if not reader.hides_space(space.id)
        ),
        goals=tuple(
            _aim_of(goal)
            for goal in sorted(goals.goals_of(tx, agent.id), key=lambda each: each.number)
            if goals.fact(goal)[0] not in hidden
        ),
        notes={note.key: note.text for note in notes.notes_of(tx, agent.id) if notes.fact(note)[0] not in hidden},
        plans=tuple(
            _intent_of(plan, agent.definition.zone)
            for plan in agenda.plans_of(tx, agent.id)
            if plan.kind == "plan" and f"plan:{plan.id}" not in hidden
        ),
    )


def _place(tx: Tx, space: Space, agent_id: AgentId) -> AgentSpace:
    attention: Attention = next(
        each.attention for each in directory.members(tx, space.id) if each.entity.id == agent_id
    )
    return AgentSpace(name=space.name, attention=None if attention == "all" else attention)


def _aim_of(goal: Goal) -> Aim:
    return Aim(
        text=goal.text,
        status=None if goal.status == "active" else goal.status,
        priority=None if goal.priority == "normal" else goal.priority,
    )


def _intent_of(plan: Plan, home: str) -> Intent:
    zone = None if plan.schedule.zone == home else plan.schedule.zone
    match plan.schedule:
        case Cron(expression=expression):
            return Intent(name=plan.name, instruction=plan.instruction, cron=expression, zone=zone)
        case Once(at=at):
            told = moment(at).isoformat(timespec="seconds")
            return Intent(name=plan.name, instruction=plan.instruction, at=told, zone=zone)
        case Heartbeat():
            raise AssertionError("a heartbeat is not a plan")
