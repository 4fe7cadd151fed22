"""`denizen.advisors`: who answers in a panel."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.api.arguments import number_of, text_of
from denizen.api.subject import EntityRef, PanelRef, Subject, id_of, optional_id_of, requester_of
from denizen.api.wiring import Wiring
from denizen.ids import SpaceId
from denizen.panel import advisor_stances, advisors, estimating, panels
from denizen.panel.advisor_stances import VoiceStance
from denizen.panel.advisors import SUGGESTED_ADVISORS, Advisor, AdvisorDraft, AdvisorFields
from denizen.panel.settings import PanelSettings, checked
from denizen.panel.suggesting import Suggestion
from denizen.reflection import configuration
from denizen.reflection.settings import Metaprompt
from denizen.reflection.stance_store import VOICES, PastRun, PastSignal, Stance
from denizen.reflection.state import Complexity, Mood, Skill, wanted
from denizen.reflection.thinking import MetapromptTrial
from denizen.storage.database import Tx

AdvisorLike = AdvisorDraft | Mapping[str, Any] | str
"""An advisor as it is described: a draft, its fields, or its name alone."""


class Advisors(Subject):
    """The advisors of panels.

    ```python
    board = await denizen.panels.create("Board", [noor], model="demo")
    await denizen.advisors.add(board, "Kai", {"name": "Lena", "description": "a careful accountant"})
    assert [each.name for each in await denizen.advisors.list(board)] == ["Kai", "Lena"]
    ```
    """

    async def list(self, panel: PanelRef) -> builtins.list[Advisor]:
        """The advisors of the panel, in order, also those that are switched off."""
        return await self._read_space(panel, advisors.list_of)

    async def add(
        self, panel: PanelRef, *given: AdvisorLike, by: Requester = THIS_PROCESS, key: str | None = None
    ) -> builtins.list[Advisor]:
        """Add advisors to the panel; one may be given as its name alone. Repeated with the same `key`, they are added
        once.
        """
        return await self._runtime.db.write(advisors.add, by, id_of(panel), drafted(self._runtime, given), key=key)

    async def edit(
        self,
        panel: PanelRef,
        advisor: Advisor | str,
        *,
        by: Requester = THIS_PROCESS,
        **changes: Unpack[AdvisorFields],
    ) -> Advisor:
        """Change these fields of the advisor. What it said stays."""
        check_reflection(self._runtime, changes.get("reflection"))
        return await self._runtime.db.write(advisors.edit, by, id_of(panel), id_of(advisor), changes)

    async def remove(self, panel: PanelRef, advisor: Advisor | str, *, by: Requester = THIS_PROCESS) -> None:
        """Remove the advisor. What it said stays."""
        await self._runtime.db.write(advisors.remove, by, id_of(panel), id_of(advisor))

    async def reorder(
        self, panel: PanelRef, order: Iterable[Advisor | str], *, by: Requester = THIS_PROCESS
    ) -> builtins.list[Advisor]:
        """Put the advisors in this order."""
        return await self._runtime.db.write(advisors.reorder, by, id_of(panel), [id_of(each) for each in order])

    async def set_group_active(
        self, panel: PanelRef, group: str, active: bool, *, by: Requester = THIS_PROCESS
    ) -> builtins.list[Advisor]:
        """Switch all advisors of the group on, or off."""
        return await self._runtime.db.write(advisors.set_group_active, by, id_of(panel), group, active)

    async def import_document(
        self,
        panel: PanelRef,
        document: Mapping[str, Any],
        *,
        replace: bool = False,
        by: Requester = THIS_PROCESS,
        key: str | None = None,
    ) -> builtins.list[Advisor]:
        """Add the advisors of an exported document; with `replace`, instead of those that are there. `key` as for
        `add`.
        """
        check_reflection(self._runtime, *(each.reflection for each in advisors.read(document)))
        return await self._runtime.db.write(advisors.bring_in, by, id_of(panel), document, replace=replace, key=key)

    async def export(self, panel: PanelRef) -> dict[str, Any]:
        """The advisors of the panel as a document that `import_document` reads."""
        return advisors.taken_out(await self.list(panel))

    async def suggest(
        self, panel: PanelRef, topic: str, *, count: int = SUGGESTED_ADVISORS
    ) -> builtins.list[Suggestion]:
        """Advisors that a model suggests for the topic, each with a reason."""
        return await estimating.suggest(
            self._runtime.panel_deps(), id_of(panel), text_of(topic, "topic"), number_of(count, "count", 1)
        )

    async def stance(self, panel: PanelRef, advisor: Advisor | str) -> Stance:
        """The profile that the advisor had when it answered last, and its state of mind; also for `assistant`."""
        return await self._runtime.db.read(_stance, id_of(panel), id_of(advisor))

    async def stances(self, panel: PanelRef) -> builtins.list[VoiceStance]:
        """The same for all advisors, in order, with the reasons; without advisors, for `assistant`."""
        return await self._runtime.db.read(_standings, id_of(panel))

    async def set_state_of_mind(
        self,
        panel: PanelRef,
        advisor: Advisor | str,
        *,
        mood: Mood | None = None,
        user_skill: Skill | None = None,
        task_complexity: Complexity | None = None,
        by: EntityRef | Requester = THIS_PROCESS,
    ) -> Stance:
        """Set the state of mind of the advisor. It is told with its next request."""
        given = wanted({"mood": mood, "user_skill": user_skill, "task_complexity": task_complexity})
        return await self._runtime.db.write(
            advisor_stances.set_state, requester_of(by), id_of(panel), id_of(advisor), given
        )

    async def reset_state_of_mind(
        self, panel: PanelRef, advisor: Advisor | str, *, by: EntityRef | Requester = THIS_PROCESS
    ) -> Stance:
        """Reset the state of mind of the advisor and its counters. The history stays."""
        return await self._runtime.db.write(advisor_stances.reset, requester_of(by), id_of(panel), id_of(advisor))

    async def states_of_mind(
        self, panel: PanelRef, advisor: Advisor | str, *, limit: int = 100
    ) -> builtins.list[PastRun]:
        """How the state of mind changed, the newest first."""
        return await self._read_space(panel, _runs, id_of(advisor), number_of(limit, "limit", 1))

    async def signals(self, panel: PanelRef, advisor: Advisor | str, *, limit: int = 100) -> builtins.list[PastSignal]:
        """The signals that sentiment gave, the newest first."""
        return await self._read_space(panel, _signals, id_of(advisor), number_of(limit, "limit", 1))

    async def try_metaprompt(
        self,
        panel: PanelRef,
        advisor: Advisor | str,
        metaprompt: str | Metaprompt,
        *,
        apply: bool = False,
        by: EntityRef | None = None,
    ) -> MetapromptTrial:
        """Run a metaprompt of an advisor now: one of its own or of the configuration by its id, or any other.

        Only with `apply` does its answer change the state of mind. What it uses is paid by the panel.
        """
        return await self._runtime.reflecting().try_metaprompt(
            id_of(panel), id_of(advisor), metaprompt, apply=apply, by=optional_id_of(by)
        )


def drafted(runtime: Wiring, given: Iterable[AdvisorLike]) -> list[AdvisorDraft]:
    """Advisors as drafts. Raises `InvalidInput` where a field is wrong."""
    drafts = [_draft(each) for each in given]
    check_reflection(runtime, *(each.reflection for each in drafts))
    return drafts


def check_reflection(runtime: Wiring, *given: object) -> None:
    """Raises `InvalidInput` if a panel or an advisor would reflect with a profile, metaprompt or classifier that is not
    configured here. None is always valid.
    """
    for each in given:
        if each is not None:
            settings = checked(PanelSettings, {"reflection": each}, "a panel").reflection
            configuration.require_known(settings, runtime.prompt_config.configuration())
            runtime.require_classifier(settings)


def _draft(given: AdvisorLike) -> AdvisorDraft:
    if isinstance(given, AdvisorDraft):
        return given
    return advisors.drafted({"name": given} if isinstance(given, str) else given)


def _stance(tx: Tx, panel_id: SpaceId, voice: str) -> Stance:
    advisor_stances.voice(tx, panels.get(tx, panel_id), voice)
    return advisor_stances.stance(tx, panel_id, voice)


def _standings(tx: Tx, panel_id: SpaceId) -> list[VoiceStance]:
    return advisor_stances.standings(tx, panels.get(tx, panel_id))


def _runs(tx: Tx, panel_id: SpaceId, voice: str, limit: int) -> list[PastRun]:
    return VOICES.runs_of(tx, voice, panel_id, limit=limit)


def _signals(tx: Tx, panel_id: SpaceId, voice: str, limit: int) -> list[PastSignal]:
    return VOICES.signals_of(tx, voice, panel_id, limit=limit)
