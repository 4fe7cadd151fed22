"""The Python API: one `Runtime`, with what can be done sorted by subject.

A subject is imported when it is first used: a command needs one or two of them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from denizen.api.wiring import Wiring

if TYPE_CHECKING:
    from denizen.api.advisors import Advisors
    from denizen.api.agents import Agents
    from denizen.api.bridges import Bridges
    from denizen.api.budgets import Budgets
    from denizen.api.calls import Calls
    from denizen.api.files import Files
    from denizen.api.mcp_servers import McpServers
    from denizen.api.memory import Memory
    from denizen.api.minds import Minds
    from denizen.api.model_setup import ModelSetup
    from denizen.api.organizations import Organizations
    from denizen.api.panels import Panels
    from denizen.api.people import People
    from denizen.api.plans import Goals, Notes, Plans
    from denizen.api.reflection import Reflection
    from denizen.api.rounds import Rounds
    from denizen.api.secrets import Secrets
    from denizen.api.spaces import Spaces
    from denizen.api.webhooks import Webhooks


class Runtime(Wiring):
    """A home for agents and the people they live with. Use it as `async with Runtime(...) as denizen`.

    Agents think while `run_until_idle()` runs, or inside `async with denizen.living()`. Everything else is sorted by
    subject: `denizen.agents`, `denizen.spaces`, `denizen.plans` and so on.

    ```python
    from denizen import Runtime

    async with Runtime(default_model="demo") as denizen:
        noor = await denizen.people.create("Noor")
        ada = await denizen.agents.create("Ada", instructions="You help in the kitchen.")
        kitchen = await denizen.spaces.create("Kitchen", [noor, ada])
        await denizen.spaces.post(kitchen, noor, "Good morning!")
        await denizen.run_until_idle()
        assert len(await denizen.spaces.messages(kitchen)) == 2
    ```
    """

    @cached_property
    def organizations(self) -> Organizations:
        """Create and list organizations; import files."""
        from denizen.api.organizations import Organizations

        return Organizations(self)

    @cached_property
    def people(self) -> People:
        """Create, find, remove and forget people."""
        from denizen.api.people import People

        return People(self)

    @cached_property
    def agents(self) -> Agents:
        """Create, change, suspend, delete, fork and wake agents."""
        from denizen.api.agents import Agents

        return Agents(self)

    @cached_property
    def spaces(self) -> Spaces:
        """Create and join spaces; post, change, search and forget messages."""
        from denizen.api.spaces import Spaces

        return Spaces(self)

    @cached_property
    def files(self) -> Files:
        """Upload and read files, to attach them to messages."""
        from denizen.api.files import Files

        return Files(self)

    @cached_property
    def minds(self) -> Minds:
        """Look into agents: inbox, log, cycles, recall, replay."""
        from denizen.api.minds import Minds

        return Minds(self)

    @cached_property
    def calls(self) -> Calls:
        """Answer what agents ask; list and revoke approvals."""
        from denizen.api.calls import Calls

        return Calls(self)

    @cached_property
    def goals(self) -> Goals:
        """The goals of agents."""
        from denizen.api.plans import Goals

        return Goals(self)

    @cached_property
    def notes(self) -> Notes:
        """The notes of agents."""
        from denizen.api.plans import Notes

        return Notes(self)

    @cached_property
    def plans(self) -> Plans:
        """The plans and timers of agents."""
        from denizen.api.plans import Plans

        return Plans(self)

    @cached_property
    def memory(self) -> Memory:
        """Summaries of conversations, and long-term memories."""
        from denizen.api.memory import Memory

        return Memory(self)

    @cached_property
    def reflection(self) -> Reflection:
        """Prompt profiles and states of mind of agents."""
        from denizen.api.reflection import Reflection

        return Reflection(self)

    @cached_property
    def panels(self) -> Panels:
        """Create, change and ask panels of advisors."""
        from denizen.api.panels import Panels

        return Panels(self)

    @cached_property
    def advisors(self) -> Advisors:
        """The advisors of panels."""
        from denizen.api.advisors import Advisors

        return Advisors(self)

    @cached_property
    def rounds(self) -> Rounds:
        """The answers of panels: cancel, retry, synthesize, vote."""
        from denizen.api.rounds import Rounds

        return Rounds(self)

    @cached_property
    def budgets(self) -> Budgets:
        """What agents may use, and what they have used."""
        from denizen.api.budgets import Budgets

        return Budgets(self)

    @cached_property
    def secrets(self) -> Secrets:
        """Keys that are kept encrypted."""
        from denizen.api.secrets import Secrets

        return Secrets(self)

    @cached_property
    def mcp_servers(self) -> McpServers:
        """MCP servers that a person signs in to."""
        from denizen.api.mcp_servers import McpServers

        return McpServers(self)

    @cached_property
    def webhooks(self) -> Webhooks:
        """Addresses at which services tell agents what happened."""
        from denizen.api.webhooks import Webhooks

        return Webhooks(self)

    @cached_property
    def bridges(self) -> Bridges:
        """Connect rooms of other services with spaces, and accounts there with people."""
        from denizen.api.bridges import Bridges

        return Bridges(self)

    @cached_property
    def models(self) -> ModelSetup:
        """Register, find, test and choose models."""
        from denizen.api.model_setup import ModelSetup

        return ModelSetup(self)
