"""`denizen.panels`: several advisors who answer a person at once."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Unpack

from pydantic import JsonValue

from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.api.advisors import AdvisorLike, check_reflection, drafted
from denizen.api.arguments import text_of
from denizen.api.files import FileRef, uploaded
from denizen.api.spaces import Spaces
from denizen.api.subject import EntityRef, OrganizationRef, PanelRef, Subject, id_of, ids_of
from denizen.errors import InvalidInput
from denizen.ids import MessageId, SpaceId
from denizen.panel import estimating, panels, rounds, transcript
from denizen.panel.advisors import create_panel
from denizen.panel.costs import CostEstimate
from denizen.panel.panels import Panel
from denizen.panel.rounds import Round
from denizen.panel.settings import PanelFields


class Panels(Subject):
    """Panels. Their advisors are in `denizen.advisors`, their answers in `denizen.rounds`.

    ```python
    board = await denizen.panels.create("Board", [noor], advisors=["Kai", "Lena"], model="demo")
    await denizen.panels.ask(board, noor, "Bread or rolls?")
    await denizen.run_until_idle()
    assert "Bread or rolls?" in await denizen.panels.transcript(board)
    ```
    """

    async def create(
        self,
        name: str,
        members: Iterable[EntityRef] = (),
        *,
        advisors: Iterable[AdvisorLike] = (),
        private: bool = False,
        organization: OrganizationRef | None = None,
        by: Requester = THIS_PROCESS,
        id: SpaceId | None = None,
        **settings: Unpack[PanelFields],
    ) -> Panel:
        """Create a panel with these members and advisors; an advisor may be given as its name alone.

        The person `by` whom it is created is its owner. Repeated with the same `id`, it is created once.
        """
        runtime = self._runtime
        check_reflection(runtime, settings.get("reflection"))
        home = await runtime.organization_id(organization)
        joining, drafts = ids_of(members, "members"), drafted(runtime, advisors)
        return await runtime.db.write(
            create_panel, by, home, name, joining, drafts, private=private, settings=settings, id=id
        )

    async def get(self, panel: PanelRef) -> Panel:
        """The panel as it is now."""
        return await self._runtime.db.read(panels.get, id_of(panel))

    async def list(self, who: EntityRef) -> builtins.list[Panel]:
        """The panels they are in."""
        return await self._read_entity(who, panels.panels_of)

    async def edit(
        self,
        panel: PanelRef,
        *,
        name: str | None = None,
        by: Requester = THIS_PROCESS,
        **settings: Unpack[PanelFields],
    ) -> Panel:
        """Change the name of the panel, or these settings.

        ```python
        board = await denizen.panels.create("Board", [noor], model="demo")
        board = await denizen.panels.edit(board, synthesis="always")
        assert board.settings.synthesis == "always"
        ```
        """
        check_reflection(self._runtime, settings.get("reflection"))
        return await self._runtime.db.write(panels.edit, by, id_of(panel), settings, name=name)

    async def ask(
        self,
        panel: PanelRef,
        author: EntityRef | Requester,
        text: str,
        *,
        id: MessageId | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
        files: Sequence[Path | FileRef] = (),
    ) -> Round:
        """Post a message to the panel. Returns its round, which the advisors answer; `denizen.rounds.get` has their
        answers."""
        attached = await uploaded(self._runtime, author, files)
        # Advisors cannot open files later: what they are to know of them has to be in the request.
        await self._runtime.wait_until_files_are_read(attached)
        posted = await Spaces(self._runtime).post(id_of(panel), author, text, id=id, metadata=metadata, files=attached)
        begun = await self._runtime.db.read(rounds.begun_by, posted.id)
        if begun is None:
            raise InvalidInput("Only what a person says to a panel is answered.")
        return begun

    async def estimate(self, panel: PanelRef, text: str) -> builtins.list[CostEstimate]:
        """What the message would cost, advisor by advisor."""
        return await estimating.foretell(self._runtime.panel_deps(), id_of(panel), text_of(text, "text"))

    async def transcript(self, panel: PanelRef) -> str:
        """Everything that was said in the panel, in Markdown."""
        return await self._runtime.db.read(transcript.markdown, id_of(panel))
