"""Panels: who advises in them, what they are asked, and what each voice answers."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID, uuid5

from fastapi import APIRouter, Query, Request, Response

from denizen.cycles import organization
from denizen.errors import NotFound
from denizen.ids import EntityId, MessageId, SpaceId
from denizen.panel import advisors, panels, rounds, taking, transcript
from denizen.panel.panels import Panel
from denizen.panel.rounds import Part
from denizen.server.auth import Authenticated, Caller, Person, require
from denizen.server.context import context_of
from denizen.server.problems import Problem
from denizen.server.routes.entities import find_present
from denizen.server.routes.messages import IdempotencyKey
from denizen.server.shapes.panels import (
    AdvisorChange,
    AdvisorFile,
    AdvisorImport,
    AdvisorIn,
    AdvisorList,
    AdvisorOrder,
    AdvisorOut,
    AskPanel,
    ContextOut,
    CostOut,
    CrosstalkRequest,
    GroupChange,
    PanelChange,
    PanelCreate,
    PanelList,
    PanelOut,
    RoundOut,
    RoundPage,
    SuggestionList,
    SuggestionOut,
    SuggestRequest,
    VoiceChoice,
    VoteRequest,
)
from denizen.server.streams.advising import round_out
from denizen.spaces import directory
from denizen.storage.database import Tx, storable

router = APIRouter()

LONGEST_PAGE: Final = 100
_LAST: Final = 2**62
_KEYS: Final = UUID("8d2f0c6e-51b7-4f0a-9b7d-0c3e5a7f9d21")
"""Under which idempotency keys become the ids of messages."""
_NAMES_KEYS: Final = UUID("b6f1a3c0-6e0d-4c66-8f53-1f9e7b2d4a58")
"""Under which they become the ids of panels."""


@router.get("/api/panels", summary="The panels you are in")
async def list_panels(request: Request, caller: Authenticated) -> PanelList:
    return await context_of(request).runtime.db.read(_mine, caller.entity.id)


@router.post("/api/panels", status_code=201, summary="Open a panel")
async def create_panel(request: Request, caller: Person, wanted: PanelCreate, key: IdempotencyKey = None) -> PanelOut:
    """You are in it as its owner, and so are the members that you name. Its id is that of its space."""
    chosen = None if key is None else SpaceId(str(uuid5(_NAMES_KEYS, f"{caller.entity.id} {key}")))
    return await context_of(request).runtime.db.write(_create, caller, wanted, chosen)


@router.get("/api/panels/{panel_id}", summary="One of them")
async def get_panel(request: Request, caller: Authenticated, panel_id: str) -> PanelOut:
    return await context_of(request).runtime.db.read(_one, panel_id, caller.entity.id)


@router.patch("/api/panels/{panel_id}", summary="Change how a panel answers")
async def change_panel(request: Request, caller: Person, panel_id: str, change: PanelChange) -> PanelOut:
    """What is being answered goes on as it was begun."""
    return await context_of(request).runtime.db.write(_change, panel_id, caller.entity.id, change)


# Advisors


@router.get("/api/panels/{panel_id}/advisors", summary="Who advises")
async def list_advisors(request: Request, caller: Authenticated, panel_id: str) -> AdvisorList:
    """Switched off or on, in order."""
    return await context_of(request).runtime.db.read(_advisors, panel_id, caller.entity.id)


@router.post("/api/panels/{panel_id}/advisors", status_code=201, summary="Add an advisor")
async def add_advisor(request: Request, caller: Person, panel_id: str, wanted: AdvisorIn) -> AdvisorOut:
    return await context_of(request).runtime.db.write(_add, panel_id, caller.entity.id, wanted)


@router.put("/api/panels/{panel_id}/advisors/order", summary="Put the advisors in order")
async def order_advisors(request: Request, caller: Person, panel_id: str, wanted: AdvisorOrder) -> AdvisorList:
    return await context_of(request).runtime.db.write(_reorder, panel_id, caller.entity.id, wanted.advisors)


@router.put("/api/panels/{panel_id}/advisors/group", summary="Switch a group of advisors on or off")
async def switch_group(request: Request, caller: Person, panel_id: str, wanted: GroupChange) -> AdvisorList:
    return await context_of(request).runtime.db.write(_switch, panel_id, caller.entity.id, wanted)


@router.get("/api/panels/{panel_id}/advisors/export", summary="The advisors, to take along")
async def export_advisors(request: Request, caller: Authenticated, panel_id: str) -> AdvisorFile:
    return await context_of(request).runtime.db.read(_export, panel_id, caller.entity.id)


@router.post("/api/panels/{panel_id}/advisors/import", status_code=201, summary="Bring advisors in")
async def import_advisors(request: Request, caller: Person, panel_id: str, given: AdvisorImport) -> AdvisorList:
    """All of them, or with an error none."""
    return await context_of(request).runtime.db.write(_import, panel_id, caller.entity.id, given)


@router.post("/api/panels/{panel_id}/advisors/suggest", summary="Have advisors suggested")
async def suggest_advisors(request: Request, caller: Person, panel_id: str, asked: SuggestRequest) -> SuggestionList:
    """A model proposes them from a topic, each with a reason. Nothing is changed."""
    runtime = context_of(request).runtime
    panel = await runtime.db.read(enter, panel_id, caller.entity.id)
    found = await runtime.suggest_advisors(panel, asked.topic, count=asked.count)
    return SuggestionList(suggestions=[SuggestionOut.of(each) for each in found])


@router.patch("/api/panels/{panel_id}/advisors/{advisor_id}", summary="Change an advisor")
async def change_advisor(
    request: Request, caller: Person, panel_id: str, advisor_id: str, change: AdvisorChange
) -> AdvisorOut:
    """What it has said stays its own, under whatever name."""
    return await context_of(request).runtime.db.write(_edit, panel_id, caller.entity.id, advisor_id, change)


@router.delete("/api/panels/{panel_id}/advisors/{advisor_id}", status_code=204, summary="Remove an advisor")
async def remove_advisor(request: Request, caller: Person, panel_id: str, advisor_id: str) -> None:
    """It is asked no more. What it has said stays."""
    await context_of(request).runtime.db.write(_remove, panel_id, caller.entity.id, advisor_id)


# Rounds


@router.post("/api/panels/{panel_id}/rounds", status_code=201, summary="Ask a panel")
async def ask_panel(
    request: Request, caller: Person, panel_id: str, asked: AskPanel, key: IdempotencyKey = None
) -> RoundOut:
    """The message stands in the panel's space, and everyone it is for has it to answer, when this answers.

    A message posted to the space of the panel does the same. Follow the stream of the space, or read the round again.
    """
    runtime = context_of(request).runtime
    panel = await runtime.db.read(enter, panel_id, caller.entity.id)
    chosen = None if key is None else MessageId(str(uuid5(_KEYS, f"{caller.entity.id} {panel.id} {key}")))
    begun = await runtime.ask_panel(panel, caller.entity.id, asked.text, id=chosen)
    told = await runtime.db.read(round_out, begun)
    if told.message is not None and told.message.text != storable(asked.text):
        raise Problem("idempotency_key_reused", "You asked something else with this Idempotency-Key: choose a new one.")
    return told


@router.get("/api/panels/{panel_id}/rounds", summary="What was asked and answered")
async def list_rounds(
    request: Request,
    caller: Authenticated,
    panel_id: str,
    before: Annotated[int | None, Query(ge=1, le=_LAST, description="Only turns before this one.")] = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="Turns.")] = 20,
) -> RoundPage:
    """The rounds of the last turns, the oldest first, with those of cross-talk and votes."""
    return await context_of(request).runtime.db.read(_page, panel_id, caller.entity.id, before, limit)


@router.post("/api/panels/{panel_id}/cost", summary="What a message would cost")
async def foretell_cost(request: Request, caller: Person, panel_id: str, asked: AskPanel) -> CostOut:
    """Voice by voice. Nothing is asked."""
    runtime = context_of(request).runtime
    panel = await runtime.db.read(enter, panel_id, caller.entity.id)
    return CostOut.of(await runtime.foretell(panel, storable(asked.text)))


@router.get(
    "/api/panels/{panel_id}/transcript",
    summary="All of it, as a document",
    response_class=Response,
    responses={200: {"description": "Markdown.", "content": {"text/markdown": {"schema": {"type": "string"}}}}},
)
async def get_transcript(request: Request, caller: Authenticated, panel_id: str) -> Response:
    text = await context_of(request).runtime.db.read(_transcript, panel_id, caller.entity.id)
    return Response(text, media_type="text/markdown; charset=utf-8")


@router.get("/api/panels/{panel_id}/rounds/{round_id}", summary="One round")
async def get_round(request: Request, caller: Authenticated, panel_id: str, round_id: str) -> RoundOut:
    return await context_of(request).runtime.db.read(_round, panel_id, caller.entity.id, round_id)


@router.post("/api/panels/{panel_id}/rounds/{round_id}/cancel", summary="Have one or all answer no more")
async def cancel_round(request: Request, caller: Person, panel_id: str, round_id: str, whom: VoiceChoice) -> RoundOut:
    """What is done stays."""
    return await context_of(request).runtime.db.write(_cancel, panel_id, caller.entity.id, round_id, whom.advisor)


@router.post("/api/panels/{panel_id}/rounds/{round_id}/retry", summary="Ask one or all again")
async def retry_round(request: Request, caller: Person, panel_id: str, round_id: str, whom: VoiceChoice) -> RoundOut:
    """Those who have failed or were cancelled. Who has answered, and is named, answers anew: what it said is gone."""
    return await context_of(request).runtime.db.write(_retry, panel_id, caller.entity.id, round_id, whom.advisor)


@router.post("/api/panels/{panel_id}/rounds/{round_id}/synthesis", summary="Have it put together")
async def want_synthesis(request: Request, caller: Person, panel_id: str, round_id: str) -> RoundOut:
    """Agreements, disagreements, what to decide: it streams as the part `synthesis` of the round."""
    return await context_of(request).runtime.db.write(_synthesis, panel_id, caller.entity.id, round_id)


@router.post(
    "/api/panels/{panel_id}/rounds/{round_id}/crosstalk", status_code=201, summary="Let them answer each other"
)
async def begin_crosstalk(
    request: Request, caller: Person, panel_id: str, round_id: str, wanted: CrosstalkRequest
) -> RoundOut:
    """Gives the first round of it; the others follow by themselves. For the last turn, when it is over."""
    return await context_of(request).runtime.db.write(_crosstalk, panel_id, caller.entity.id, round_id, wanted.rounds)


@router.post("/api/panels/{panel_id}/rounds/{round_id}/vote", status_code=201, summary="Have them vote")
async def begin_vote(request: Request, caller: Person, panel_id: str, round_id: str, wanted: VoteRequest) -> RoundOut:
    """Gives the round of the vote; its `tally` says what it came to."""
    return await context_of(request).runtime.db.write(_vote, panel_id, caller.entity.id, round_id, wanted.question)


@router.get(
    "/api/panels/{panel_id}/rounds/{round_id}/replies/{advisor_id}/context", summary="What an advisor was shown"
)
async def get_reply_context(
    request: Request, caller: Authenticated, panel_id: str, round_id: str, advisor_id: str, part: Part | None = None
) -> ContextOut:
    """Message by message, as it was sent to the model. `assistant` and `synthesis` stand for advisors too."""
    return await context_of(request).runtime.db.read(_context, panel_id, caller.entity.id, round_id, advisor_id, part)


def enter(tx: Tx, panel_id: str, entity_id: EntityId) -> Panel:
    """The panel, if the caller is in it: the door of every route below a panel."""
    return panels.require(tx, SpaceId(storable(panel_id)), entity_id)


def _mine(tx: Tx, entity_id: EntityId) -> PanelList:
    mine = panels.panels_of(tx, entity_id)
    return PanelList(panels=[PanelOut.of(each, advisors.list_of(tx, each.id)) for each in mine])


def _one(tx: Tx, panel_id: str, entity_id: EntityId) -> PanelOut:
    panel = enter(tx, panel_id, entity_id)
    return PanelOut.of(panel, advisors.list_of(tx, panel.id))


def _create(tx: Tx, caller: Caller, wanted: PanelCreate, chosen: SpaceId | None) -> PanelOut:
    home, me = caller.entity.organization_id, caller.entity.id
    require(caller, organization.settings_of(tx, home).spaces_by)
    if chosen is not None:
        # Two requests with the same key at the same time: the second finds what the first has made.
        directory.hold(tx, me)
        try:
            return _one(tx, chosen, me)
        except NotFound:
            pass
    joining = [find_present(tx, each, caller).id for each in wanted.members]
    panel = panels.create(
        tx, home, wanted.name, private=wanted.private, settings=wanted.settings, members=joining, owner=me, id=chosen
    )
    made = advisors.add(tx, panel.id, [advisors.drafted(_fields(each)) for each in wanted.advisors])
    return PanelOut.of(panel, made)


def _fields(given: AdvisorIn) -> dict[str, Any]:
    return given.model_dump(mode="json", exclude_unset=True)


def _change(tx: Tx, panel_id: str, entity_id: EntityId, change: PanelChange) -> PanelOut:
    panel = enter(tx, panel_id, entity_id)
    if change.name is not None:
        directory.rename_space(tx, panel.id, change.name)
    if change.settings:
        panels.edit(tx, panel.id, change.settings)
    return _one(tx, panel_id, entity_id)


def _advisors(tx: Tx, panel_id: str, entity_id: EntityId) -> AdvisorList:
    return AdvisorList.of(advisors.list_of(tx, enter(tx, panel_id, entity_id).id))


def _add(tx: Tx, panel_id: str, entity_id: EntityId, wanted: AdvisorIn) -> AdvisorOut:
    panel = enter(tx, panel_id, entity_id)
    [made] = advisors.add(tx, panel.id, [advisors.drafted(_fields(wanted))])
    return AdvisorOut.of(made)


def _reorder(tx: Tx, panel_id: str, entity_id: EntityId, order: list[str]) -> AdvisorList:
    return AdvisorList.of(advisors.reorder(tx, enter(tx, panel_id, entity_id).id, order))


def _switch(tx: Tx, panel_id: str, entity_id: EntityId, wanted: GroupChange) -> AdvisorList:
    panel = enter(tx, panel_id, entity_id)
    advisors.set_group_active(tx, panel.id, storable(wanted.group), wanted.active)
    return AdvisorList.of(advisors.list_of(tx, panel.id))


def _export(tx: Tx, panel_id: str, entity_id: EntityId) -> AdvisorFile:
    listed = advisors.list_of(tx, enter(tx, panel_id, entity_id).id)
    return AdvisorFile.model_validate(advisors.taken_out(listed))


def _import(tx: Tx, panel_id: str, entity_id: EntityId, given: AdvisorImport) -> AdvisorList:
    panel = enter(tx, panel_id, entity_id)
    document = {"format": given.format, "advisors": given.advisors}
    return AdvisorList.of(advisors.bring_in(tx, panel.id, document, replace=given.replace))


def _edit(tx: Tx, panel_id: str, entity_id: EntityId, advisor_id: str, change: AdvisorChange) -> AdvisorOut:
    panel = enter(tx, panel_id, entity_id)
    changes = change.model_dump(mode="json", exclude_unset=True)
    return AdvisorOut.of(advisors.edit(tx, panel.id, storable(advisor_id), changes))


def _remove(tx: Tx, panel_id: str, entity_id: EntityId, advisor_id: str) -> None:
    advisors.remove(tx, enter(tx, panel_id, entity_id).id, storable(advisor_id))


def _page(tx: Tx, panel_id: str, entity_id: EntityId, before: int | None, limit: int) -> RoundPage:
    panel = enter(tx, panel_id, entity_id)
    last = panel.turns if before is None else min(before - 1, panel.turns)
    first = max(last - limit + 1, 1)
    told = [each for turn in range(first, last + 1) for each in rounds.of_turn(tx, panel.id, turn)]
    return RoundPage(rounds=[round_out(tx, each) for each in told], next=first if first > 1 else None)


def _transcript(tx: Tx, panel_id: str, entity_id: EntityId) -> str:
    return transcript.markdown(tx, enter(tx, panel_id, entity_id).id)


def _round(tx: Tx, panel_id: str, entity_id: EntityId, round_id: str) -> RoundOut:
    return round_out(tx, rounds.get(tx, enter(tx, panel_id, entity_id).id, storable(round_id)))


def _cancel(tx: Tx, panel_id: str, entity_id: EntityId, round_id: str, voice: str | None) -> RoundOut:
    panel = enter(tx, panel_id, entity_id)
    return round_out(tx, rounds.cancel(tx, panel.id, storable(round_id), voice))


def _retry(tx: Tx, panel_id: str, entity_id: EntityId, round_id: str, voice: str | None) -> RoundOut:
    panel = enter(tx, panel_id, entity_id)
    return round_out(tx, rounds.retry(tx, panel.id, storable(round_id), voice))


def _synthesis(tx: Tx, panel_id: str, entity_id: EntityId, round_id: str) -> RoundOut:
    panel = enter(tx, panel_id, entity_id)
    return round_out(tx, rounds.want_synthesis(tx, panel.id, storable(round_id)))


def _crosstalk(tx: Tx, panel_id: str, entity_id: EntityId, round_id: str, times: int) -> RoundOut:
    panel = enter(tx, panel_id, entity_id)
    return round_out(tx, rounds.begin_crosstalk(tx, panel.id, storable(round_id), entity_id, times))


def _vote(tx: Tx, panel_id: str, entity_id: EntityId, round_id: str, question: str) -> RoundOut:
    panel = enter(tx, panel_id, entity_id)
    return round_out(tx, rounds.begin_vote(tx, panel.id, storable(round_id), entity_id, question))


def _context(tx: Tx, panel_id: str, entity_id: EntityId, round_id: str, voice: str, part: Part | None) -> ContextOut:
    panel = enter(tx, panel_id, entity_id)
    return ContextOut.of(taking.context_of(tx, panel.id, storable(round_id), storable(voice), part))
