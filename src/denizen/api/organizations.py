"""`denizen.organizations`: the tenants of a server, and files that are imported into them."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.agents import preset_changes, registry
from denizen.agents.preset_changes import PresetsDocument
from denizen.api import retention
from denizen.api.subject import OrganizationRef, Subject
from denizen.forgetting import receipts
from denizen.forgetting.receipts import Receipt
from denizen.ids import AgentId
from denizen.portability import importing
from denizen.portability.imported import Imported
from denizen.spaces import directory
from denizen.spaces.directory import Organization


class Organizations(Subject):
    """Organizations. Where there is only one, `organization=` can be left out everywhere.

    ```python
    bakery = await denizen.organizations.create("Bakery")
    assert [each.name for each in await denizen.organizations.list()] == ["Home", "Bakery"]
    ```
    """

    async def create(self, name: str) -> Organization:
        """Create an organization without people."""
        return await self._runtime.db.write(directory.create_organization, name)

    async def list(self) -> builtins.list[Organization]:
        """All organizations, the oldest first."""
        return await self._runtime.db.read(directory.list_organizations)

    async def receipts(self, *, organization: OrganizationRef | None = None) -> builtins.list[Receipt]:
        """The receipts of forgetting, oldest first: how much was removed from where, not the text."""
        return await self._runtime.db.read(receipts.receipts, await self._runtime.organization_id(organization))

    async def remove_expired(self) -> builtins.list[Receipt]:
        """Remove the messages that were kept as long as they were to be, in all organizations and spaces. Without a
        setting, none are. Returns a receipt for each batch. `denizen up` does this once a day.
        """
        return await retention.remove_expired(self._runtime, self._runtime.archive_folder)

    async def presets(self, *, organization: OrganizationRef | None = None) -> PresetsDocument:
        """The prompt profiles that apply in the organization, in the format of a presets file."""
        runtime = self._runtime
        home = await runtime.organization_id(organization)
        return await runtime.db.read(preset_changes.get, home, runtime.prompt_config)

    async def change_presets(
        self,
        document: Mapping[str, JsonValue],
        *,
        organization: OrganizationRef | None = None,
        by: Requester = THIS_PROCESS,
    ) -> PresetsDocument:
        """Replace the prompt profiles of the server for this organization."""
        runtime = self._runtime
        home = await runtime.organization_id(organization)
        return await runtime.db.write(preset_changes.change, by, home, document, runtime.prompt_config)

    async def reset_presets(
        self, *, organization: OrganizationRef | None = None, by: Requester = THIS_PROCESS
    ) -> PresetsDocument:
        """Remove the organization's own prompt profiles. Returns those that apply now."""
        runtime = self._runtime
        home = await runtime.organization_id(organization)
        return await runtime.db.write(preset_changes.reset, by, home, runtime.prompt_config)

    async def import_file(
        self,
        path: Path,
        *,
        handle: str | None = None,
        name: str | None = None,
        organization: OrganizationRef | None = None,
        by: Requester = THIS_PROCESS,
    ) -> Imported:
        """Import an exported agent or space: all of the file or, with an error, nothing. An agent is suspended until it
        is resumed.

        Raises `NotAllowed` unless the requester is an owner, and may define such an agent.

        ```python
        from pathlib import Path

        Path("kitchen.jsonl").write_text("".join([line async for line in denizen.spaces.export(kitchen)]))
        imported = await denizen.organizations.import_file(Path("kitchen.jsonl"), name="Second kitchen")
        assert imported.kind == "space"
        ```
        """
        runtime = self._runtime
        home = await runtime.organization_id(organization or by.organization_id)
        policy = runtime.definition_policy
        made = await importing.take_in(
            runtime.db, by, policy, home, path, limits=runtime.file_limits, handle=handle, name=name
        )
        if made.kind != "agent":
            return made
        # Not refused: a file of another server cannot be changed. The agent is parked when it would think.
        agent = await runtime.db.read(registry.get, AgentId(made.id))
        return replace(made, unpriced=tuple(await runtime.equipment().models_without_price(agent)))
