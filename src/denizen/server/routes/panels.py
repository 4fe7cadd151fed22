"""Panels: who advises in them, what they are asked, and what each voice answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Concatenate, Final, ParamSpec, TypeVar
from uuid import UUID, uuid5

from fastapi import Depends, Query, Request, Response

from denizen.access import people
from denizen.access.space_changes import require_space_creator
from denizen.errors import NotFound
from denizen.ids import EntityId, FileId, SpaceId
from denizen.memory import settled
from denizen.panel import advisors, panels, rounds, taking, transcript
from denizen.panel.panels import Panel
from denizen.panel.rounds import Part
from denizen.server import paneling
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
from denizen.server.streams.advising import read_round_out
from denizen.shapes.examples import text_answer
from denizen.shapes.panels import ContextOut, CostOut, RoundOut, RoundPage, SuggestionList
from denizen.spaces import directory
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
    """A caller at the door of a panel. Whatever is done there is done with the panel that it is let into."""

    context: Context
    caller: Caller
    panel_id: str

    async def read(self, fn: Callable[Concatenate[Tx, Panel, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.context.runtime.db.read(self._inside, fn, *args, **kwargs)

    async def write(self, fn: Callable[Concatenate[Tx, Panel, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.context.runtime.db.write(self._inside, fn, *args, **kwargs)

    async def enter(self) -> Panel:
        return await self.context.runtime.db.read(self._enter)

    def _inside(self, tx: Tx, fn: Callable[Concatenate[Tx, Panel, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return fn(tx, self._enter(tx), *args, **kwargs)

    def _enter(self, tx: Tx) -> Panel:
        """The panel, if the caller is in it: the door of every route below a panel."""
        return panels.require(tx, SpaceId(storable(self.panel_id)), self.caller.entity.id)


async def _reads(request: Request, caller: Authenticated, panel_id: str) -> AtPanel:
    return AtPanel(context_of(request), caller, panel_id)


async def _asks(request: Request, caller: Person, panel_id: str) -> AtPanel:
    return AtPanel(context_of(request), caller, panel_id)


Reader = Annotated[AtPanel, Depends(_reads)]
"""A route's parameter: someone who reads in the panel of the path."""
Member = Annotated[AtPanel, Depends(_asks)]
"""A person who asks it something, or changes it."""


@router.get("/api/panels", summary="List your panels")
async def list_panels(request: Request, caller: Authenticated) -> PanelList:
    return await context_of(request).runtime.db.read(_mine, caller.entity.id)


@router.post(
    "/api/panels",
    status_code=201,
    summary="Create a panel",
    openapi_extra={"x-who": "people; if the organization's `spaces_by` is `admin`: admins and owners"},
)
async def create_panel(request: Request, caller: Person, wanted: PanelCreate, key: IdempotencyKey = None) -> PanelOut:
    """You are its owner, and the given people are members. Its id is that of its space."""
    runtime = context_of(request).runtime
    runtime.panels.check_reflection(wanted.settings.get("reflection"), *(each.reflection for each in wanted.advisors))
    chosen = None if key is None else SpaceId(str(uuid5(_KEYS, f"{caller.entity.id} {key}")))
    return await runtime.db.write(_create, caller, wanted, chosen)


@router.get("/api/panels/{panel_id}", summary="Get a panel")
async def get_panel(here: Reader) -> PanelOut:
    return await here.read(_one)


@router.patch("/api/panels/{panel_id}", summary="Change the name or the settings of a panel")
async def change_panel(here: Member, change: PanelChange) -> PanelOut:
    """Rounds that have begun continue with the old settings."""
    here.context.runtime.panels.check_reflection(change.settings.get("reflection"))
    return await here.write(_change, change)


# Advisors


@router.get("/api/panels/{panel_id}/advisors", summary="List the advisors of a panel")
async def list_advisors(here: Reader) -> AdvisorList:
    """In order, including inactive ones."""
    return await here.read(_advisors)


@router.post("/api/panels/{panel_id}/advisors", status_code=201, summary="Add an advisor")
async def add_advisor(here: Member, wanted: AdvisorIn, key: IdempotencyKey = None) -> AdvisorOut:
    here.context.runtime.panels.check_reflection(wanted.reflection)
    return await here.write(_add, wanted, id_for(here.caller, f"advisor {here.panel_id}", key))


@router.put("/api/panels/{panel_id}/advisors/order", summary="Reorder the advisors")
async def order_advisors(here: Member, wanted: AdvisorOrder) -> AdvisorList:
    return await here.write(_reorder, wanted.advisors)


@router.put("/api/panels/{panel_id}/advisors/group", summary="Activate or deactivate a group of advisors")
async def switch_group(here: Member, wanted: GroupChange) -> AdvisorList:
    return await here.write(_switch, wanted)


@router.get("/api/panels/{panel_id}/advisors/export", summary="Export the advisors")
async def export_advisors(here: Reader) -> AdvisorFile:
    return await here.read(_export)


@router.post("/api/panels/{panel_id}/advisors/import", status_code=201, summary="Import advisors")
async def import_advisors(here: Member, given: AdvisorImport, key: IdempotencyKey = None) -> AdvisorList:
    """All of them or, if there is an error, none."""
    here.context.runtime.panels.check_reflection(*(each.reflection for each in advisors.read(given.document)))
    return await here.write(_import, given, id_for(here.caller, f"advisors {here.panel_id}", key))


@router.post("/api/panels/{panel_id}/advisors/suggest", summary="Suggest advisors for a topic")
async def suggest_advisors(here: Member, asked: SuggestRequest) -> SuggestionList:
    """A model proposes them, each with a reason. Nothing is changed."""
    panel = await here.enter()
    found = await here.context.runtime.advisors.suggest(panel, asked.topic, count=asked.count)
    return SuggestionList(suggestions=[suggestion_out(each) for each in found])


@router.patch("/api/panels/{panel_id}/advisors/{advisor_id}", summary="Change an advisor")
async def change_advisor(here: Member, advisor_id: str, change: AdvisorChange) -> AdvisorOut:
    """Its earlier replies stay."""
    here.context.runtime.panels.check_reflection(change.reflection)
    return await here.write(_edit, advisor_id, change)


@router.delete("/api/panels/{panel_id}/advisors/{advisor_id}", status_code=204, summary="Remove an advisor")
async def remove_advisor(here: Member, advisor_id: str) -> None:
    """It no longer answers. Its earlier replies stay."""
    await here.write(_remove, advisor_id)


# Rounds


@router.post("/api/panels/{panel_id}/rounds", status_code=201, summary="Ask a panel")
async def ask_panel(here: Member, asked: AskPanel, key: IdempotencyKey = None) -> RoundOut:
    """When this returns, the message is in the panel's space, and everyone who should answer has received it.

    Posting a message to the space of the panel does the same. Follow the stream of the space, or get the round again.
    """
    metadata = settled.asserting(None, asked.organization_id, here.caller.entity.organization_id)
    begun = await paneling.ask(
        here.context, here.caller, await here.enter(), asked.text, key, metadata, [FileId(each) for each in asked.files]
    )
    return await here.context.runtime.db.read(read_round_out, begun)


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
    return cost_out(await here.context.runtime.panels.estimate(panel, storable(asked.text)))


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
    return await here.write(_cancel, round_id, whom.advisor)


@router.post("/api/panels/{panel_id}/rounds/{round_id}/retry", summary="Retry replies of a round")
async def retry_round(here: Member, round_id: str, whom: VoiceChoice) -> RoundOut:
    """Those that failed or were cancelled. If an advisor is given that has answered, it answers again, and its old
    reply is replaced.
    """
    return await here.write(_retry, round_id, whom.advisor)


@router.post("/api/panels/{panel_id}/rounds/{round_id}/synthesis", summary="Write a synthesis")
async def want_synthesis(here: Member, round_id: str) -> RoundOut:
    """Agreements, disagreements and decisions to make. It is streamed as the part `synthesis` of the round."""
    return await here.write(_synthesis, round_id)


@router.post(
    "/api/panels/{panel_id}/rounds/{round_id}/crosstalk", status_code=201, summary="Let the advisors answer each other"
)
async def begin_crosstalk(
    here: Member, round_id: str, wanted: CrosstalkRequest, key: IdempotencyKey = None
) -> RoundOut:
    """Returns the first round; the others follow by themselves. For the last turn, after its replies."""
    chosen = id_for(here.caller, f"crosstalk {here.panel_id}", key)
    return await here.write(_crosstalk, round_id, here.caller.entity.id, wanted.rounds, chosen)


@router.post("/api/panels/{panel_id}/rounds/{round_id}/vote", status_code=201, summary="Let the advisors vote")
async def begin_vote(here: Member, round_id: str, wanted: VoteRequest, key: IdempotencyKey = None) -> RoundOut:
    """Returns the round of the vote; its `tally` has the result."""
    chosen = id_for(here.caller, f"vote {here.panel_id}", key)
    return await here.write(_vote, round_id, here.caller.entity.id, wanted.question, chosen)


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


def _create(tx: Tx, caller: Caller, wanted: PanelCreate, chosen: SpaceId | None) -> PanelOut:
    home, me = caller.entity.organization_id, caller.entity.id
    require_space_creator(tx, caller.requester, home)
    if chosen is not None:
        # Two requests with the same key at the same time: the second finds what the first has made.
        directory.hold(tx, me)
        try:
            return _one(tx, panels.require(tx, chosen, me))
        except NotFound:
            pass
    joining = [people.find_present(tx, home, each).id for each in wanted.members]
    panel = panels.create(
        tx, home, wanted.name, private=wanted.private, settings=wanted.settings, members=joining, owner=me, id=chosen
    )
    made = advisors.add(tx, panel.id, [advisors.drafted(_fields(each)) for each in wanted.advisors])
    return panel_out(panel, made)


def _fields(given: AdvisorIn) -> dict[str, Any]:
    return given.model_dump(mode="json", exclude_unset=True)


def _change(tx: Tx, panel: Panel, change: PanelChange) -> PanelOut:
    if change.name is not None:
        directory.rename_space(tx, panel.id, change.name)
    if change.settings:
        panels.edit(tx, panel.id, change.settings)
    return _one(tx, panels.get(tx, panel.id))


def _advisors(tx: Tx, panel: Panel) -> AdvisorList:
    return advisor_list_out(advisors.list_of(tx, panel.id))


def _add(tx: Tx, panel: Panel, wanted: AdvisorIn, key: str | None) -> AdvisorOut:
    [made] = advisors.add(tx, panel.id, [advisors.drafted(_fields(wanted))], key=key)
    return advisor_out(made)


def _reorder(tx: Tx, panel: Panel, order: list[str]) -> AdvisorList:
    return advisor_list_out(advisors.reorder(tx, panel.id, order))


def _switch(tx: Tx, panel: Panel, wanted: GroupChange) -> AdvisorList:
    advisors.set_group_active(tx, panel.id, storable(wanted.group), wanted.active)
    return _advisors(tx, panel)


def _export(tx: Tx, panel: Panel) -> AdvisorFile:
    return AdvisorFile.model_validate(advisors.taken_out(advisors.list_of(tx, panel.id)))


def _import(tx: Tx, panel: Panel, given: AdvisorImport, key: str | None) -> AdvisorList:
    return advisor_list_out(advisors.bring_in(tx, panel.id, given.document, replace=given.replace, key=key))


def _edit(tx: Tx, panel: Panel, advisor_id: str, change: AdvisorChange) -> AdvisorOut:
    changes = change.model_dump(mode="json", exclude_unset=True)
    return advisor_out(advisors.edit(tx, panel.id, storable(advisor_id), changes))


def _remove(tx: Tx, panel: Panel, advisor_id: str) -> None:
    advisors.remove(tx, panel.id, storable(advisor_id))


def _page(tx: Tx, panel: Panel, before: int | None, limit: int) -> RoundPage:
    last = panel.turns if before is None else min(before - 1, panel.turns)
    first = max(last - limit + 1, 1)
    told = [each for turn in range(first, last + 1) for each in rounds.of_turn(tx, panel.id, turn)]
    return RoundPage(rounds=[read_round_out(tx, each) for each in told], next=first if first > 1 else None)


def _transcript(tx: Tx, panel: Panel) -> str:
    return transcript.markdown(tx, panel.id)


def _round(tx: Tx, panel: Panel, round_id: str) -> RoundOut:
    return read_round_out(tx, rounds.get(tx, panel.id, storable(round_id)))


def _cancel(tx: Tx, panel: Panel, round_id: str, voice: str | None) -> RoundOut:
    return read_round_out(tx, rounds.cancel(tx, panel.id, storable(round_id), voice))


def _retry(tx: Tx, panel: Panel, round_id: str, voice: str | None) -> RoundOut:
    return read_round_out(tx, rounds.retry(tx, panel.id, storable(round_id), voice))


def _synthesis(tx: Tx, panel: Panel, round_id: str) -> RoundOut:
    return read_round_out(tx, rounds.want_synthesis(tx, panel.id, storable(round_id)))


def _crosstalk(tx: Tx, panel: Panel, round_id: str, by: EntityId, times: int, chosen: str | None) -> RoundOut:
    return read_round_out(tx, rounds.begin_crosstalk(tx, panel.id, storable(round_id), by, times, id=chosen))


def _vote(tx: Tx, panel: Panel, round_id: str, by: EntityId, question: str, chosen: str | None) -> RoundOut:
    return read_round_out(tx, rounds.begin_vote(tx, panel.id, storable(round_id), by, question, id=chosen))


def _context(tx: Tx, panel: Panel, round_id: str, voice: str, part: Part | None) -> ContextOut:
    return context_out(taking.context_of(tx, panel.id, storable(round_id), storable(voice), part))
