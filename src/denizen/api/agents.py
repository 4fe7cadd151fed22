"""`denizen.agents`: create, change, suspend, delete and wake agents."""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import JsonValue, ValidationError

from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.agents import applying, fitness, managing, registry
from denizen.agents.definition import AgentChanges, AgentDefinition, AgentSettings
from denizen.agents.differences import Change
from denizen.agents.documents import AgentDocument
from denizen.agents.files import Declared
from denizen.agents.fitness import Fitness, Unable
from denizen.agents.registry import Agent, Status
from denizen.api.arguments import listed, text_of
from denizen.api.files import FileRef, Files
from denizen.api.subject import (
    AgentRef,
    EntityRef,
    OrganizationRef,
    PersonRef,
    SpaceRef,
    Subject,
    id_of,
    optional_id_of,
)
from denizen.cycles.alerts import context_too_large
from denizen.cycles.troubles import classify
from denizen.errors import DenizenError, InvalidInput, OutcomeUnknown, PriceUnknown
from denizen.ids import OrganizationId, new_id
from denizen.inbox.outside import storable_data
from denizen.reflection.persona import as_definition
from denizen.spaces.handles import handle_from
from denizen.storage.database import storable
from denizen.tools.settings import ToolSettings
from denizen.tools.tool import OutsideTool, require_tool

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from denizen.models.probing import Probing


class Agents(Subject):
    """The agents of an organization.

    ```python
    bea = await denizen.agents.create("Bea", instructions="You water the plants.", model="demo")
    await denizen.agents.suspend(bea)
    assert await denizen.agents.status(bea) == "suspended"
    ```
    """

    async def create(
        self,
        name: str,
        *,
        model: str | Model = "default",
        instructions: str = "",
        handle: str | None = None,
        tools: Iterable[str | OutsideTool | ToolSettings] = (),
        organization: OrganizationRef | None = None,
        by: Requester = THIS_PROCESS,
        **settings: Unpack[AgentSettings],
    ) -> Agent:
        """Create an agent. It is asleep and in no space.

        A model or tool that is given as an object is registered with this runtime. Raises `InvalidInput` where the
        definition is wrong, `HandleTaken` where the handle is in use, and `NotAllowed` where the requester may not
        define such an agent.

        ```python
        cook = await denizen.agents.create(
            "Cook",
            instructions="You help in the kitchen.",
            model="demo",
            zone="Europe/Berlin",
            budget={"tokens_per_day": 100_000},
        )
        assert cook.definition.zone == "Europe/Berlin"
        ```
        """
        runtime = self._runtime
        home = await runtime.organization_id(organization or by.organization_id)
        handle = handle or handle_from(text_of(name, "name"))
        if not isinstance(model, str):
            _check_model(model)
            runtime.model_catalog.register(f"python:{handle}", model)
            model = f"python:{handle}"
        names = [self._register_tool(each) for each in listed(tools, "tools")]
        defined = registry.define(model=model, instructions=instructions, tools=names, **settings)
        await self.check_prices(home, defined)
        return await runtime.db.write(
            managing.create, by, runtime.definition_policy, home, name=name, handle=handle, definition=defined
        )

    def _register_tool(self, given: str | OutsideTool | ToolSettings) -> str | ToolSettings:
        if not isinstance(given, OutsideTool) and not callable(given):
            return given
        given = require_tool(given)
        self._runtime.register_tool(given)
        return given.name

    async def get(self, agent: AgentRef) -> Agent:
        """The agent as it is defined now. Raises `NotFound` where there is none."""
        return await self._runtime.db.read(registry.get, id_of(agent))

    async def list(self, *, organization: OrganizationRef | None = None) -> builtins.list[Agent]:
        """The agents of the organization, without deleted ones.

        ```python
        assert [each.name for each in await denizen.agents.list()] == ["Ada"]
        ```
        """
        home = await self._runtime.organization_id(organization)
        return [agent for agent, _ in await self._runtime.db.read(registry.living_agents, home)]

    async def edit(self, agent: AgentRef, *, by: Requester = THIS_PROCESS, **changes: Unpack[AgentChanges]) -> Agent:
        """Change these fields of the definition. A new era begins with the agent's next cycle.

        ```python
        ada = await denizen.agents.edit(ada, instructions="Answer in one sentence.")
        assert ada.definition.instructions == "Answer in one sentence."
        ```
        """

        def change(before: AgentDefinition) -> AgentDefinition:
            return registry.define(**(before.model_dump(exclude_defaults=True) | as_definition(changes)))

        runtime = self._runtime
        current = await runtime.db.read(managing.find, by, id_of(agent))
        before = current.definition
        await self.check_prices(current.entity.organization_id, change(before), before=before)
        return await runtime.db.write(managing.edit, by, runtime.definition_policy, current.id, change)

    async def suspend(self, agent: AgentRef, *, by: Requester = THIS_PROCESS) -> None:
        """The agent does not think until it is resumed. Its inbox keeps what arrives meanwhile.

        Raises `NotAllowed` unless the requester is an admin of its organization, or this process itself.
        """
        await self._runtime.db.write(managing.suspend, by, id_of(agent))

    async def resume(self, agent: AgentRef, *, by: Requester = THIS_PROCESS) -> None:
        """The agent thinks again, and wakes if something waits for it."""
        await self._runtime.db.write(managing.resume, by, id_of(agent))

    async def delete(self, agent: AgentRef, *, by: Requester = THIS_PROCESS) -> None:
        """The agent never wakes again. Its history and its handle stay."""
        await self._runtime.db.write(managing.delete, by, id_of(agent))

    async def status(self, agent: AgentRef) -> Status:
        """What the agent is doing: `sleeping`, `alive`, `paused`, `suspended` or `dead`."""
        return await self._runtime.db.read(registry.status, id_of(agent))

    async def fork(
        self,
        agent: AgentRef,
        *,
        handle: str | None = None,
        at: int | None = None,
        name: str | None = None,
        by: Requester = THIS_PROCESS,
    ) -> Agent:
        """Create an agent with the history of this one, up to cycle `at`. The copy is in no space.

        ```python
        await denizen.spaces.post(kitchen, noor, "Good morning.")
        await denizen.run_until_idle()
        copy = await denizen.agents.fork(ada, handle="ada_copy")
        assert copy.entity.handle == "ada_copy"
        ```
        """
        policy = self._runtime.definition_policy
        return await self._runtime.db.write(managing.fork, by, policy, id_of(agent), handle=handle, at=at, name=name)

    async def trigger(
        self,
        agent: AgentRef,
        service: str,
        data: JsonValue = None,
        *,
        text: str = "",
        id: str | None = None,
        urgent: bool = False,
        must_match: bool = False,
        files: Sequence[Path | FileRef] = (),
        by: Requester = THIS_PROCESS,
    ) -> None:
        """Wake the agent with an event from outside. An `id` makes it safe to send the same event again.

        `files` are uploads of the requester, or paths that are uploaded first.

        With `must_match`, raises `IdempotencyKeyReused` if another event was sent with this `id`.

        ```python
        await denizen.agents.trigger(ada, "doorbell", {"door": "front"}, id="ring-1")
        await denizen.agents.trigger(ada, "doorbell", {"door": "front"}, id="ring-1")
        assert len(await denizen.minds.inbox(ada)) == 1
        ```
        """
        payload: dict[str, JsonValue] = {"service": storable(service), "text": storable(text)}
        if data is not None:
            payload["data"] = storable_data(data)
        # Chosen before the write: after an unknown outcome the same event is sent again, not a second one.
        chosen = id or new_id()
        self._runtime.remember_cause(chosen)
        uploader = by.optional_entity_id or id_of(agent)
        attached = [
            id_of(await Files(self._runtime).upload(uploader, each) if isinstance(each, Path) else each)
            for each in files
        ]

        async def trigger() -> None:
            await self._runtime.db.write(
                managing.trigger,
                by,
                id_of(agent),
                chosen,
                payload,
                urgent=urgent,
                must_match=must_match,
                files=attached,
            )

        try:
            await trigger()
        except OutcomeUnknown:
            await trigger()

    async def try_again(self, agent: AgentRef, space: SpaceRef | None = None, *, by: Requester = THIS_PROCESS) -> None:
        """The agent tries now what it could not do, in that space or everywhere.

        Messages that were set aside while somebody waits are taken up again.
        """
        await self._runtime.db.write(managing.try_again, by, id_of(agent), optional_id_of(space))

    async def check(
        self, organization: OrganizationRef | None = None, *, probe: bool = False
    ) -> builtins.list[Fitness]:
        """Whether each agent can think in this process, how long people have waited for it, and what it set aside.

        With `probe`, each of their models is asked for a few tokens, once.
        """
        found = await self._runtime.db.read(fitness.of_organization, await self._runtime.organization_id(organization))
        from denizen.models.probing import Probing

        probing = Probing() if probe else None
        return [each if each.unable is not None else await self._checked(each, probing) for each in found]

    async def _checked(self, found: Fitness, probing: Probing | None) -> Fitness:
        model_name = ""
        try:
            agent = await self._runtime.db.read(registry.get, found.agent_id)
            model_name = agent.definition.model
            models, _, _ = await self._runtime.equipment().check(agent)
            if probing is not None:
                for name, model in models.items():
                    model_name = name
                    await probing.ask(model)
        except (DenizenError, ValidationError) as error:
            trouble = classify(error, self._runtime.default_model if model_name == "default" else model_name)
            return replace(found, unable=Unable(found.agent_id, found.name, trouble.cause, trouble.detail))
        return replace(found, context_too_large=self._context_too_large(agent, models))

    def _context_too_large(self, agent: Agent, models: Mapping[str, Model]) -> str | None:
        from denizen.models.context_size import accepted_by_server

        wanted, contexts = agent.definition.window.context_tokens, self._runtime.contexts
        for name, model in models.items():
            accepted = accepted_by_server(model)
            told = context_too_large(wanted, accepted, name) or context_too_large(
                contexts.get(name), accepted, name, f'"{name}" under [contexts]'
            )
            if told is not None:
                return f"{agent.name}: {told.text}"
        return None

    async def apply(
        self,
        definitions: Iterable[Declared],
        *,
        dry_run: bool = False,
        creator: EntityRef | None = None,
        organization: OrganizationRef | None = None,
        by: Requester = THIS_PROCESS,
    ) -> builtins.list[Change]:
        """Make agents, spaces and triggers as definition files describe them: all of them, or none.

        Returns what changed, in the order of the documents; a dry run changes nothing. The `creator` joins every new
        space. Raises `NotAllowed` where the requester may not define such agents; people change only their own spaces.
        """
        from denizen.bridges.applying import apply_bridge

        runtime = self._runtime
        home, declared = await runtime.organization_id(organization or by.organization_id), [*definitions]
        await self._check_declared_prices(home, declared)
        try:
            do = applying.rehearse if dry_run else applying.apply
            make_bridge = partial(apply_bridge, policy=runtime.bridge_policy)
            policy = runtime.definition_policy
            return await runtime.db.write(do, by, policy, home, declared, optional_id_of(creator), make_bridge)
        except applying.ApplyRehearsed as rehearsed:
            return rehearsed.changes

    def export(self, agent: AgentRef, *, reader: PersonRef | None = None) -> AsyncGenerator[str]:
        """The lines of a file with the agent and its whole history, without secrets.

        For a `reader`, what comes from private spaces that they are not in is left out.
        """
        from denizen.portability import exporting

        return exporting.agent_lines(self._runtime.db, id_of(agent), optional_id_of(reader))

    async def check_prices(
        self, organization_id: OrganizationId, definition: AgentDefinition, *, before: AgentDefinition | None = None
    ) -> None:
        """Raises `PriceUnknown` where the definition sets a budget in dollars for a model without a known price."""
        budgeted = definition.budget is not None and definition.budget.in_dollars
        if budgeted and (before is None or before.budget != definition.budget):
            await self._runtime.equipment().check_prices([(organization_id, definition)])

    async def _check_declared_prices(self, organization_id: OrganizationId, declared: Iterable[Declared]) -> None:
        """The same for the agents in definition files; the error names the agent."""
        for each in declared:
            if isinstance(each.document, AgentDocument):
                handle = each.document.handle
                before = await self._runtime.db.read(applying.definition_of, organization_id, handle)
                try:
                    await self.check_prices(organization_id, each.document.definition, before=before)
                except PriceUnknown as error:
                    raise PriceUnknown(error.model, agent=handle) from error


def _check_model(given: Any) -> None:
    from pydantic_ai.models import Model

    if not isinstance(given, Model):
        raise InvalidInput(
            f"`model` is of the type {type(given).__name__}. Give a string such as 'provider:name', or a model object."
        )
