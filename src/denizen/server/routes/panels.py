"""Panels: their settings, advisors, rounds and replies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Concatenate, Final, ParamSpec, TypeVar, cast
from uuid import UUID, uuid5

from fastapi import Depends, Query, Request, Response

from denizen.access.requesters import Requester
from denizen.app import Runtime
from denizen.ids import EntityId, FileId, SpaceId
from denizen.memory import stored_policies
from denizen.panel import advisors, claims, panels, rounds, transcript
from denizen.panel.advisors import AdvisorFields
from denizen.panel.panels import Panel
from denizen.panel.rounds import Part, Round
from denizen.panel.settings import PanelFields
from denizen.server import openai_panels
from denizen.server.auth import Authenticated, Caller, Person
from denizen.server.context import Context, context_of
from denizen.server.idempotency import IdempotencyKey, id_for
from denizen.server.router import new_router
from denizen.server.shapes.panels import (
    AdvisorChange,
    AdvisorFile,
    AdvisorImport,
    AdvisorIn,
    AdvisorList,
    AdvisorOrder,
    AdvisorOut,
    AskPanel,
    CrosstalkRequest,
    GroupChange,
    PanelChange,
    PanelCreate,
    PanelList,
    PanelOut,
    SuggestRequest,
    VoiceChoice,
    VoteRequest,
    advisor_list_out,
    advisor_out,
    context_out,
    cost_out,
    panel_out,
    suggestion_out,
)
from denizen.server.streams.panel_events import read_round_out
from denizen.shapes.examples import text_answer
from denizen.shapes.panels import ContextOut, CostOut, RoundOut, RoundPage, SuggestionList
from denizen.storage.database import Tx, storable

router = new_router()

LONGEST_PAGE: Final = 100
_LAST: Final = 2**62
_KEYS: Final = UUID("b6f1a3c0-6e0d-4c66-8f53-1f9e7b2d4a58")
"""Under which idempotency keys become the ids of panels."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AtPanel:
    """A caller who asks for something in a panel."""

    context: Context
    caller: Caller
    id: SpaceId
    """The panel of the path. Whether the caller is in it is checked by what is called with `by`."""

    @property
    def by(self) -> Requester:
        return self.caller.requester

    @property
    def runtime(self) -> Runtime:
        return self.context.runtime

    async def read(self, fn: Callable[Concatenate[Tx, Panel, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Reads something of the panel, if the caller is in it."""
        return await self.runtime.db.read(self._inside, fn, *args, **kwargs)

    async def change_round(
        self, use_case: Callable[Concatenate[Tx, Requester, str, P], Round], *args: P.args, **kwargs: P.kwargs
    ) -> RoundOut:
        """Changes a round of the panel, and returns it as it is then."""
        return await self.runtime.db.write(self._changed, use_case, *args, **kwargs)

    async def enter(self) -> Panel:
        return await self.runtime.db.read(panels.find, self.by, self.id)

    def _inside(self, tx: Tx, fn: Callable[Concatenate[Tx, Panel, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return fn(tx, panels.find(tx, self.by, self.id), *args, **kwargs)

    def _changed(
        self, tx: Tx, use_case: Callable[Concatenate[Tx, Requester, str, P], Round], *args: P.args, **kwargs: P.kwargs
    ) -> RoundOut:
        return read_round_out(tx, use_case(tx, self.by, self.id, *args, **kwargs))


async def _reads(request: Request, caller: Authenticated, panel_id: str) -> AtPanel:
    return AtPanel(context_of(request), caller, SpaceId(panel_id))


async def _asks(request: Request, caller: Person, panel_id: str) -> AtPanel:
    return AtPanel(context_of(request), caller, SpaceId(panel_id))


Reader = Annotated[AtPanel, Depends(_reads)]
"""A route's parameter: someone who reads in the panel of the path."""
Member = Annotated[AtPanel, Depends(_asks)]
"""A person who asks it something, or changes it."""


@router.get("/api/panels", summary="List your panels")
async def list_panels(caller: Authenticated) -> PanelList:
    return await caller.runtime.db.read(_mine, caller.entity.id)


@router.post(
    "/api/panels",
    status_code=201,
    summary="Create a panel",
    openapi_extra={"x-who": "people; if the organization's `spaces_by` is `admin`: admins and owners"},
)
async def create_panel(caller: Person, wanted: PanelCreate, key: IdempotencyKey = None) -> PanelOut:
    """You are its owner, and the given people are members. Its id is that of its space."""
    runtime, home = caller.runtime, caller.entity.organization_id
    chosen = None if key is None else SpaceId(str(uuid5(_KEYS, f"{caller.entity.id} {key}")))
    panel = await runtime.panels.create(
        wanted.name,
        [EntityId(each) for each in wanted.members],
        advisors=[_fields(each) for each in wanted.advisors],
        private=wanted.private,
        organization=home,
        by=caller.requester,
        id=chosen,
        **cast(PanelFields, wanted.settings),
    )
    return await runtime.db.read(_one, panel)


@router.get("/api/panels/{panel_id}", summary="Get a panel")
async def get_panel(here: Reader) -> PanelOut:
    return await here.read(_one)


@router.patch("/api/panels/{panel_id}", summary="Change the name or the settings of a panel")
async def change_panel(here: Member, change: PanelChange) -> PanelOut:
    """Rounds that have begun continue with the old settings."""
    await here.runtime.panels.edit(here.id, name=change.name, by=here.by, **cast(PanelFields, change.settings))
    return await here.read(_one)


# Advisors


@router.get("/api/panels/{panel_id}/advisors", summary="List the advisors of a panel")
async def list_advisors(here: Reader) -> AdvisorList:
    """In order, including inactive ones."""
    return await here.read(_advisors)


@router.post("/api/panels/{panel_id}/advisors", status_code=201, summary="Add an advisor")
async def add_advisor(here: Member, wanted: AdvisorIn, key: IdempotencyKey = None) -> AdvisorOut:
    chosen = id_for(here.caller, f"advisor {here.id}", key)
    [made] = await here.runtime.advisors.add(here.id, _fields(wanted), by=here.by, key=chosen)
    return advisor_out(made)


@router.put("/api/panels/{panel_id}/advisors/order", summary="Reorder the advisors")
async def order_advisors(here: Member, wanted: AdvisorOrder) -> AdvisorList:
    return advisor_list_out(await here.runtime.advisors.reorder(here.id, wanted.advisors, by=here.by))


@router.put("/api/panels/{panel_id}/advisors/group", summary="Activate or deactivate a group of advisors")
async def switch_group(here: Member, wanted: GroupChange) -> AdvisorList:
    await here.runtime.advisors.set_group_active(here.id, storable(wanted.group), wanted.active, by=here.by)
    return await here.read(_advisors)


@router.get("/api/panels/{panel_id}/advisors/export", summary="Export the advisors")
async def export_advisors(here: Reader) -> AdvisorFile:
    return await here.read(_export)


@router.post("/api/panels/{panel_id}/advisors/import", status_code=201, summary="Import advisors")
async def import_advisors(here: Member, given: AdvisorImport, key: IdempotencyKey = None) -> AdvisorList:
    """All of them or, if there is an error, none."""
    chosen = id_for(here.caller, f"advisors {here.id}", key)
    added = await here.runtime.advisors.import_document(
        here.id, given.document, replace=given.replace, by=here.by, key=chosen
    )
    return advisor_list_out(added)


@router.post("/api/panels/{panel_id}/advisors/suggest", summary="Suggest advisors for a topic")
async def suggest_advisors(here: Member, asked: SuggestRequest) -> SuggestionList:
    """A model proposes them, each with a reason. Nothing is changed."""
    panel = await here.enter()
    found = await here.runtime.advisors.suggest(panel, asked.topic, count=asked.count)
    return SuggestionList(suggestions=[suggestion_out(each) for each in found])


@router.patch("/api/panels/{panel_id}/advisors/{advisor_id}", summary="Change an advisor")
async def change_advisor(here: Member, advisor_id: str, change: AdvisorChange) -> AdvisorOut:
    """Its earlier replies stay."""
    changes = cast(AdvisorFields, change.model_dump(mode="json", exclude_unset=True))
    return advisor_out(await here.runtime.advisors.edit(here.id, storable(advisor_id), by=here.by, **changes))


@router.delete("/api/panels/{panel_id}/advisors/{advisor_id}", status_code=204, summary="Remove an advisor")
async def remove_advisor(here: Member, advisor_id: str) -> None:
    """It no longer answers. Its earlier replies stay."""
    await here.runtime.advisors.remove(here.id, storable(advisor_id), by=here.by)


# Rounds


@router.post("/api/panels/{panel_id}/rounds", status_code=201, summary="Ask a panel")
async def ask_panel(here: Member, asked: AskPanel, key: IdempotencyKey = None) -> RoundOut:
    """When this returns, the message is in the panel's space, and everyone who should answer has received it.

    Posting a message to the space of the panel does the same. Follow the stream of the space, or get the round again.
    """
    metadata = stored_policies.asserting(None, asked.organization_id, here.caller.entity.organization_id)
    begun = await openai_panels.ask(
        here.context, here.caller, await here.enter(), asked.text, key, metadata, [FileId(each) for each in asked.files]
    )
    return await here.runtime.db.read(read_round_out, begun)


@router.get("/api/panels/{panel_id}/rounds", summary="List the rounds of a panel")
async def list_rounds(
    here: Reader,
    before: Annotated[int | None, Query(ge=1, le=_LAST, description="Only turns before this one.")] = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="Turns.")] = 20,
) -> RoundPage:
    """The rounds of the last turns, oldest first, with cross-talk and votes."""
    return await here.read(_page, before, limit)


@router.post("/api/panels/{panel_id}/cost", summary="Estimate the cost of a message")
async def foretell_cost(here: Member, asked: AskPanel) -> CostOut:
    """For each advisor. Nothing is asked."""
    panel = await here.enter()
    return cost_out(await here.runtime.panels.estimate(panel, storable(asked.text)))


@router.get(
    "/api/panels/{panel_id}/transcript",
    summary="Get the transcript of a panel",
    response_class=Response,
    responses=text_answer(
        "text/markdown", "Markdown.", "# Board\n\n**Noor**: Shall we?\n\n**Martin Buber**: Who is we?\n"
    ),
)
async def get_transcript(here: Reader) -> Response:
    text = await here.read(_transcript)
    return Response(text, media_type="text/markdown; charset=utf-8")


@router.get("/api/panels/{panel_id}/rounds/{round_id}", summary="Get a round")
async def get_round(here: Reader, round_id: str) -> RoundOut:
    return await here.read(_round, round_id)


@router.post("/api/panels/{panel_id}/rounds/{round_id}/cancel", summary="Cancel replies of a round")
async def cancel_round(here: Member, round_id: str, whom: VoiceChoice) -> RoundOut:
    """Finished replies stay."""
    return await here.change_round(rounds.cancel, storable(round_id), whom.advisor)


@router.post("/api/panels/{panel_id}/rounds/{round_id}/retry", summary="Retry replies of a round")
async def retry_round(here: Member, round_id: str, whom: VoiceChoice) -> RoundOut:
    """Those that failed or were cancelled. If an advisor is given that has answered, it answers again, and its old
    reply is replaced.
    """
    return await here.change_round(rounds.retry, storable(round_id), whom.advisor)


@router.post("/api/panels/{panel_id}/rounds/{round_id}/synthesis", summary="Write a synthesis")
async def want_synthesis(here: Member, round_id: str) -> RoundOut:
    """Agreements, disagreements and decisions to make. It is streamed as the part `synthesis` of the round."""
    return await here.change_round(rounds.want_synthesis, storable(round_id))


@router.post(
    "/api/panels/{panel_id}/rounds/{round_id}/crosstalk", status_code=201, summary="Let the advisors answer each other"
)
async def begin_crosstalk(
    here: Member, round_id: str, wanted: CrosstalkRequest, key: IdempotencyKey = None
) -> RoundOut:
    """Returns the first round; the others follow by themselves. For the last turn, after its replies."""
    chosen = id_for(here.caller, f"crosstalk {here.id}", key)
    return await here.change_round(rounds.begin_crosstalk, storable(round_id), wanted.rounds, id=chosen)


@router.post("/api/panels/{panel_id}/rounds/{round_id}/vote", status_code=201, summary="Let the advisors vote")
async def begin_vote(here: Member, round_id: str, wanted: VoteRequest, key: IdempotencyKey = None) -> RoundOut:
    """Returns the round of the vote; its `tally` has the result."""
    chosen = id_for(here.caller, f"vote {here.id}", key)
    return await here.change_round(rounds.begin_vote, storable(round_id), wanted.question, id=chosen)


@router.get(
    "/api/panels/{panel_id}/rounds/{round_id}/replies/{advisor_id}/context", summary="Get the context of a reply"
)
async def get_reply_context(here: Reader, round_id: str, advisor_id: str, part: Part | None = None) -> ContextOut:
    """Message by message, as it was sent to the model. `assistant` and `synthesis` can be given instead of an
    advisor.
    """
    return await here.read(_context, round_id, advisor_id, part)


def _mine(tx: Tx, entity_id: EntityId) -> PanelList:
    return PanelList(panels=[_one(tx, each) for each in panels.panels_of(tx, entity_id)])


def _one(tx: Tx, panel: Panel) -> PanelOut:
    return panel_out(panel, advisors.list_of(tx, panel.id))


def _fields(given: AdvisorIn) -> dict[str, Any]:
    return given.model_dump(mode="json", exclude_unset=True)


def _advisors(tx: Tx, panel: Panel) -> AdvisorList:
    return advisor_list_out(advisors.list_of(tx, panel.id))


def _export(tx: Tx, panel: Panel) -> AdvisorFile:
    return AdvisorFile.model_validate(advisors.taken_out(advisors.list_of(tx, panel.id)))


def _page(tx: Tx, panel: Panel, before: int | None, limit: int) -> RoundPage:
    last = panel.turns if before is None else min(before - 1, panel.turns)
    first = max(last - limit + 1, 1)
    told = [each for turn in range(first, last + 1) for each in rounds.of_turn(tx, panel.id, turn)]
    return RoundPage(rounds=[read_round_out(tx, each) for each in told], next=first if first > 1 else None)


def _transcript(tx: Tx, panel: Panel) -> str:
    return transcript.markdown(tx, panel.id)


def _round(tx: Tx, panel: Panel, round_id: str) -> RoundOut:
    return read_round_out(tx, rounds.get(tx, panel.id, storable(round_id)))


def _context(tx: Tx, panel: Panel, round_id: str, voice: str, part: Part | None) -> ContextOut:
    return context_out(claims.context_of(tx, panel.id, storable(round_id), storable(voice), part))
