"""Panels: several advisors answer at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from denizen.api.places import Places
from denizen.api.wiring import Who, id_of
from denizen.errors import InvalidInput
from denizen.ids import EntityId, MessageId, OrganizationId, SpaceId
from denizen.panel import advisors, estimating, panels, rounds, standing, taking, transcript
from denizen.panel.advisors import Advisor, AdvisorDraft
from denizen.panel.costs import Foretold
from denizen.panel.panels import Panel
from denizen.panel.rounds import Part, Round
from denizen.panel.settings import PanelSettings, checked
from denizen.panel.standing import Standing
from denizen.panel.suggesting import COUNT, Suggestion
from denizen.panel.taking import Shown
from denizen.reflection import configuration
from denizen.reflection.settings import Metaprompt
from denizen.reflection.stance_store import VOICES, PastRun, PastSignal, Stance
from denizen.reflection.state import Complexity, Mood, Skill, wanted
from denizen.reflection.thinking import Tried
from denizen.spaces.directory import Organization, Space
from denizen.storage.database import Tx


class Panels(Places):
    """Panels, their advisors and their rounds."""

    async def create_panel(
        self,
        name: str,
        members: Iterable[Who] = (),
        *,
        advisors: Iterable[AdvisorDraft | Mapping[str, Any] | str] = (),
        private: bool = False,
        organization: Organization | OrganizationId | None = None,
        **settings: Any,
    ) -> Panel:
        """A new panel with these members and advisors in it; an advisor may be given as its name alone."""
        self.check_reflection(settings.get("reflection"))
        home = await self._organization(organization)
        joining, drafts = [id_of(each) for each in members], [self._drafted(each) for each in advisors]
        return await self.db.write(_create_panel, home, name, joining, drafts, private, settings)

    async def panels(self, who: Who | EntityId) -> list[Panel]:
        """The panels they are in."""
        return await self.db.read(panels.panels_of, id_of(who))

    async def get_panel(self, panel: Panel | Space | SpaceId) -> Panel:
        return await self.db.read(panels.get, id_of(panel))

    async def edit_panel(self, panel: Panel | Space | SpaceId, **settings: Any) -> Panel:
        """The panel with these settings changed."""
        self.check_reflection(settings.get("reflection"))
        return await self.db.write(panels.edit, id_of(panel), settings)

    async def advisors(self, panel: Panel | Space | SpaceId) -> list[Advisor]:
        """Who advises in the panel, switched off or on, in order."""
        return await self.db.read(advisors.list_of, id_of(panel))

    async def add_advisors(
        self, panel: Panel | Space | SpaceId, *given: AdvisorDraft | Mapping[str, Any] | str
    ) -> list[Advisor]:
        return await self.db.write(advisors.add, id_of(panel), [self._drafted(each) for each in given])

    async def edit_advisor(self, panel: Panel | Space | SpaceId, advisor: Advisor | str, **changes: Any) -> Advisor:
        """The advisor with these fields changed; its past stays its own."""
        self.check_reflection(changes.get("reflection"))
        return await self.db.write(advisors.edit, id_of(panel), id_of(advisor), changes)

    async def remove_advisor(self, panel: Panel | Space | SpaceId, advisor: Advisor | str) -> None:
        """It is asked no more. What it has said stays."""
        await self.db.write(advisors.remove, id_of(panel), id_of(advisor))

    async def reorder_advisors(self, panel: Panel | Space | SpaceId, order: Iterable[Advisor | str]) -> list[Advisor]:
        return await self.db.write(advisors.reorder, id_of(panel), [id_of(each) for each in order])

    async def set_group_active(self, panel: Panel | Space | SpaceId, group: str, active: bool) -> list[Advisor]:
        """All advisors of the group are switched on, or off."""
        return await self.db.write(advisors.set_group_active, id_of(panel), group, active)

    async def import_advisors(
        self, panel: Panel | Space | SpaceId, document: Mapping[str, Any], *, replace: bool = False
    ) -> list[Advisor]:
        """The advisors of an exported document are in the panel; with `replace`, those that were there are not."""
        self.check_reflection(*(each.reflection for each in advisors.read(document)))
        return await self.db.write(advisors.bring_in, id_of(panel), document, replace=replace)

    async def export_advisors(self, panel: Panel | Space | SpaceId) -> dict[str, Any]:
        return advisors.taken_out(await self.advisors(panel))

    async def suggest_advisors(
        self, panel: Panel | Space | SpaceId, topic: str, *, count: int = COUNT
    ) -> list[Suggestion]:
        """Advisors that a model proposes for the topic, each with a reason."""
        return await estimating.suggest(self._panel_deps(), id_of(panel), topic, count)

    async def ask_panel(
        self,
        panel: Panel | Space | SpaceId,
        author: Who | EntityId,
        text: str,
        *,
        id: MessageId | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> Round:
        """The message stands in the panel, and everyone it is for has it to answer. `round` gives what came of it."""
        posted = await self.post(id_of(panel), author, text, id=id, metadata=metadata)
        begun = await self.db.read(rounds.begun_by, posted.id)
        if begun is None:
            raise InvalidInput("Only what a person says to a panel is answered.")
        return begun

    async def round(self, asked: Round) -> Round:
        """The round as it is now."""
        return await self.db.read(rounds.get, asked.panel_id, asked.id)

    async def rounds(
        self, panel: Panel | Space | SpaceId, *, before: int | None = None, limit: int = 50
    ) -> list[Round]:
        """The last rounds of turns before that one, or of all, the oldest first."""
        return await self.db.read(rounds.before, id_of(panel), before, limit=limit)

    async def cancel_round(self, asked: Round, advisor: Advisor | str | None = None) -> Round:
        """The advisor, or without one everyone who has not finished, answers no more in this round."""
        voice = None if advisor is None else id_of(advisor)
        return await self.db.write(rounds.cancel, asked.panel_id, asked.id, voice)

    async def retry_round(self, asked: Round, advisor: Advisor | str | None = None) -> Round:
        """The advisor, or without one everyone who has failed or was cancelled, is asked again.

        One who has answered, and is named, answers anew: what it said is gone.
        """
        voice = None if advisor is None else id_of(advisor)
        return await self.db.write(rounds.retry, asked.panel_id, asked.id, voice)

    async def synthesize(self, asked: Round) -> Round:
        """What was said is put together: the part `synthesis` of the round."""
        return await self.db.write(rounds.want_synthesis, asked.panel_id, asked.id)

    async def crosstalk(self, asked: Round, *, by: Who | EntityId, times: int = 1) -> Round:
        """The advisors answer each other, so many times; gives the first round of it."""
        return await self.db.write(rounds.begin_crosstalk, asked.panel_id, asked.id, id_of(by), times)

    async def vote(self, asked: Round, question: str = "", *, by: Who | EntityId) -> Round:
        """The advisors vote on the question, or on what the turn was about; `voting.tally` says what it came to."""
        return await self.db.write(rounds.begin_vote, asked.panel_id, asked.id, id_of(by), question)

    async def reply_context(self, asked: Round, advisor: Advisor | str, *, part: Part | None = None) -> Shown:
        """Exactly what the advisor was shown when it answered in this round."""
        return await self.db.read(taking.context_of, asked.panel_id, asked.id, id_of(advisor), part)

    async def foretell(self, panel: Panel | Space | SpaceId, text: str) -> list[Foretold]:
        """What the message would cost, voice by voice."""
        return await estimating.foretell(self._panel_deps(), id_of(panel), text)

    async def panel_transcript(self, panel: Panel | Space | SpaceId) -> str:
        """Everything that was said in the panel, in Markdown."""
        return await self.db.read(transcript.markdown, id_of(panel))

    # What its voices make of people

    async def advisor_stance(self, panel: Panel | Space | SpaceId, advisor: Advisor | str) -> Stance:
        """The profile that the advisor had when it answered last, and its state of mind. `assistant` has one, too."""
        return await self.db.read(_stance, id_of(panel), id_of(advisor))

    async def advisor_standings(self, panel: Panel | Space | SpaceId) -> list[Standing]:
        """The same for those who are there, in order, with why it is so; without advisors, that of `assistant`."""
        return await self.db.read(_standings, id_of(panel))

    async def set_advisor_state_of_mind(
        self,
        panel: Panel | Space | SpaceId,
        advisor: Advisor | str,
        *,
        mood: Mood | None = None,
        user_skill: Skill | None = None,
        task_complexity: Complexity | None = None,
        by: Who | EntityId | None = None,
    ) -> Stance:
        """What is given is so from now on; the advisor is told with its next request."""
        given = wanted({"mood": mood, "user_skill": user_skill, "task_complexity": task_complexity})
        return await self.db.write(standing.set_state, id_of(panel), id_of(advisor), given, by=by and id_of(by))

    async def reset_advisor_state_of_mind(
        self, panel: Panel | Space | SpaceId, advisor: Advisor | str, *, by: Who | EntityId | None = None
    ) -> Stance:
        """The advisor has no particular state of mind, and nothing is counted of anybody. The history stays."""
        return await self.db.write(standing.reset, id_of(panel), id_of(advisor), by=by and id_of(by))

    async def advisor_states_of_mind(
        self, panel: Panel | Space | SpaceId, advisor: Advisor | str, *, limit: int = 100
    ) -> list[PastRun]:
        """How the state of mind came to be what it is, the newest first."""
        return await self.db.read(VOICES.runs_of, id_of(advisor), id_of(panel), limit=limit)

    async def advisor_signals(
        self, panel: Panel | Space | SpaceId, advisor: Advisor | str, *, limit: int = 100
    ) -> list[PastSignal]:
        """What was seen in how people feel, the newest first."""
        return await self.db.read(VOICES.signals_of, id_of(advisor), id_of(panel), limit=limit)

    async def try_advisor_metaprompt(
        self,
        panel: Panel | Space | SpaceId,
        advisor: Advisor | str,
        metaprompt: str | Metaprompt,
        *,
        apply: bool = False,
        by: Who | EntityId | None = None,
    ) -> Tried:
        """Ask a metaprompt of an advisor now: one of its own or of the configuration by its id, or any other.

        Only with `apply` does its answer change the state of mind. What it uses is paid by the panel.
        """
        return await self._reflecting().try_metaprompt(
            id_of(panel), id_of(advisor), metaprompt, apply=apply, by=by and id_of(by)
        )

    def check_reflection(self, *given: object) -> None:
        """Raises `InvalidInput` where a panel or an advisor shall reflect by what there is not. None is always right.

        What is kept of panels is written without it, because only an open house knows its profiles and metaprompts:
        whoever writes what someone has sent asks here before.
        """
        for each in given:
            if each is not None:
                settings = checked(PanelSettings, {"reflection": each}, "a panel").reflection
                configuration.require_known(settings, self.prompt_config.configuration())
                self._require_classifier(settings)

    def _drafted(self, given: AdvisorDraft | Mapping[str, Any] | str) -> AdvisorDraft:
        draft = _drafted(given)
        self.check_reflection(draft.reflection)
        return draft


def _stance(tx: Tx, panel_id: SpaceId, voice: str) -> Stance:
    standing.voice(tx, panels.get(tx, panel_id), voice)
    return standing.stance(tx, panel_id, voice)


def _standings(tx: Tx, panel_id: SpaceId) -> list[Standing]:
    return standing.standings(tx, panels.get(tx, panel_id))


def _create_panel(
    tx: Tx,
    home: OrganizationId,
    name: str,
    joining: Sequence[EntityId],
    drafts: Sequence[AdvisorDraft],
    private: bool,
    settings: Mapping[str, Any],
) -> Panel:
    panel = panels.create(tx, home, name, private=private, settings=settings, members=joining)
    advisors.add(tx, panel.id, drafts)
    return panel


def _drafted(given: AdvisorDraft | Mapping[str, Any] | str) -> AdvisorDraft:
    if isinstance(given, AdvisorDraft):
        return given
    return advisors.drafted({"name": given} if isinstance(given, str) else given)
