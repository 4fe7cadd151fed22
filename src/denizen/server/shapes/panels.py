"""The JSON of panels, their advisors, and rounds with their replies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from denizen.clock import moment
from denizen.files.attaching import MOST_FILES
from denizen.panel.advisors import MOST_SUGGESTED, SUGGESTED_ADVISORS, Advisor
from denizen.panel.panels import Panel
from denizen.panel.phases import Phase
from denizen.panel.rounds import Reply, Round
from denizen.panel.settings import MOST_ADVISORS, MOST_CROSSTALK, PanelSettings
from denizen.reflection.settings import ReflectionSettings
from denizen.server.shapes.filling import filled
from denizen.server.shapes.given import RequestBody
from denizen.server.shapes.spaces import NamedOrganization, message_out
from denizen.shapes import panels as shapes
from denizen.shapes.examples import KITCHEN, body_example, example
from denizen.shapes.panels import (
    BUBER,
    CampOut,
    ContextOut,
    CostOut,
    ForetoldOut,
    LineOut,
    OmissionOut,
    PhaseOut,
    ReplyError,
    ReplyOut,
    ReplyProfile,
    RoundOut,
    SuggestionOut,
    TallyOut,
)
from denizen.shapes.value import Value
from denizen.spaces.posting import MESSAGE_CHARACTERS, Message

if TYPE_CHECKING:
    from denizen.panel.claims import AdvisorContext
    from denizen.panel.costs import CostEstimate
    from denizen.panel.suggesting import Suggestion


class AdvisorIn(RequestBody):
    """A new advisor."""

    model_config = body_example(name="Martin Buber", description="You look for the encounter.", group="Philosophers")

    name: str
    handle: Annotated[str | None, Field(description="`@handle` addresses it; by default derived from the name.")] = None
    description: Annotated[str, Field(max_length=20_000, description='Who it is; it stands behind "You are …".')] = ""
    colour: Annotated[str, Field(description="`#rrggbb`; empty: chosen automatically.")] = ""
    group: Annotated[str, Field(max_length=60, description="`@group` addresses all its members.")] = ""
    active: Annotated[bool, Field(description="Whether it answers when nobody is addressed.")] = True
    model: Annotated[str | None, Field(description="Null: the model of the panel.")] = None
    max_tokens: int | None = None
    reasoning: Annotated[bool, Field(description="Whether a reasoning model thinks before it answers.")] = False
    phases: Annotated[list[Phase] | None, Field(description="Its own, instead of the settings of the panel.")] = None
    assertions: Annotated[
        list[str], Field(max_length=20, description="Expectations that each of its replies is checked against.")
    ] = Field(default_factory=list[str])
    reflection: Annotated[
        ReflectionSettings | None, Field(description="Its own, instead of the settings of the panel.")
    ] = None


class AdvisorChange(RequestBody):
    """Changes of an advisor. Fields that are not sent stay unchanged."""

    model_config = body_example(active=False)

    name: str | None = None
    handle: str | None = None
    description: str | None = None
    colour: str | None = None
    group: str | None = None
    active: bool | None = None
    model: str | None = None
    max_tokens: int | None = None
    reasoning: bool | None = None
    phases: list[Phase] | None = None
    assertions: list[str] | None = None
    reflection: Annotated[
        ReflectionSettings | None, Field(description="Its own, instead of the panel's; null: the panel's.")
    ] = None


class AdvisorOut(shapes.Advisor):
    """An advisor of a panel."""

    model_config = example(
        id="019b8d40-1a00-7e35-9d4c-6f7a8b9c0d1e",
        handle="martin-buber",
        name="Martin Buber",
        description="You look for the encounter.",
        colour="#2f6f9f",
        group="Philosophers",
    )

    phases: list[Phase] | None  # pyright: ignore[reportIncompatibleVariableOverride]
    reflection: Annotated[  # pyright: ignore[reportIncompatibleVariableOverride]
        ReflectionSettings | None, Field(description="Its own; null: the panel's.")
    ]


def advisor_out(advisor: Advisor) -> AdvisorOut:
    return filled(AdvisorOut, advisor, advisor.settings)


class AdvisorList(Value):
    """The advisors of a panel, in order."""

    advisors: list[AdvisorOut]


def advisor_list_out(listed: Iterable[Advisor]) -> AdvisorList:
    return AdvisorList(advisors=[advisor_out(each) for each in listed])


class AdvisorOrder(RequestBody):
    """The order of the advisors."""

    model_config = body_example(advisors=[BUBER])

    advisors: Annotated[
        list[str], Field(max_length=MOST_ADVISORS, description="Ids; the others follow in their present order.")
    ]


class AdvisorFile(Value):
    """Exported advisors."""

    model_config = example(format="denizen.advisors/1", advisors=[{"name": "Martin Buber"}])

    format: str
    advisors: list[dict[str, Any]]


class AdvisorImport(RequestBody):
    """The export of `GET …/advisors/export`."""

    model_config = body_example(format="denizen.advisors/1", advisors=[{"name": "Martin Buber"}], replace=False)

    format: str = "denizen.advisors/1"
    advisors: Annotated[list[dict[str, Any]], Field(max_length=MOST_ADVISORS)]
    replace: Annotated[bool, Field(description="Whether the present advisors are removed.")] = False

    @property
    def document(self) -> dict[str, Any]:
        """The advisors as they were exported."""
        return {"format": self.format, "advisors": self.advisors}


class GroupChange(RequestBody):
    """Whether the advisors of a group are active."""

    model_config = body_example(group="Philosophers", active=False)

    group: str
    active: bool


class SuggestRequest(RequestBody):
    """The topic for suggested advisors."""

    model_config = body_example(topic="Whether to leave a safe job for a bakery.", count=8)

    topic: Annotated[str, Field(min_length=1, max_length=8_000)]
    count: Annotated[int, Field(ge=1, le=MOST_SUGGESTED)] = SUGGESTED_ADVISORS


def suggestion_out(suggestion: Suggestion) -> SuggestionOut:
    return filled(SuggestionOut, suggestion)


class PanelCreate(RequestBody):
    """A new panel, with you as its owner."""

    model_config = body_example(
        name="Board", advisors=[{"name": "Martin Buber"}, {"name": "Seth Godin"}], settings={"synthesis": "always"}
    )

    name: str
    private: Annotated[bool, Field(description="Whether only members can see it.")] = False
    members: Annotated[list[str], Field(max_length=200, description="The other members: ids or `@handles`.")] = Field(
        default_factory=list[str]
    )
    advisors: Annotated[list[AdvisorIn], Field(max_length=MOST_ADVISORS)] = Field(default_factory=list[AdvisorIn])
    settings: Annotated[dict[str, Any], Field(description="As in `PATCH /api/panels/{panel_id}`.")] = Field(
        default_factory=dict[str, Any]
    )


class PanelChange(RequestBody):
    """Changes of a panel. Fields that are not sent stay unchanged."""

    model_config = body_example(settings={"crosstalk": 1, "synthesis": "always", "reflection": {"profile": "basic"}})

    name: str | None = None
    settings: Annotated[
        dict[str, Any], Field(description="Only the settings that change; those of `PanelOut.settings`.")
    ] = Field(default_factory=dict[str, Any])


class PanelOut(shapes.Panel):
    """A panel: a space with advisors who answer."""

    model_config = example(id=KITCHEN, name="Board", settings={}, advisors=[])

    settings: PanelSettings  # pyright: ignore[reportIncompatibleVariableOverride]
    advisors: list[AdvisorOut]  # pyright: ignore[reportIncompatibleVariableOverride]


def panel_out(panel: Panel, advisors: Iterable[Advisor]) -> PanelOut:
    return filled(PanelOut, panel, private=panel.space.private, advisors=[advisor_out(each) for each in advisors])


class PanelList(Value):
    """Your panels."""

    panels: list[PanelOut]


class AskPanel(RequestBody):
    """A message to a panel."""

    model_config = body_example(text="@martin-buber What do I overlook?")

    text: Annotated[
        str,
        Field(
            max_length=MESSAGE_CHARACTERS,
            description="Markdown. `@handle` of advisors or groups: only those answer.",
        ),
    ]
    files: Annotated[
        list[str], Field(default_factory=list[str], max_length=MOST_FILES, description="Ids of finished uploads.")
    ]
    organization_id: NamedOrganization = None


def reply_out(reply: Reply) -> ReplyOut:
    made_of = reply.recipe or {}
    phase, background = made_of.get("phase"), made_of.get("background", {})
    profile = background.get("profile")
    return filled(
        ReplyOut,
        reply,
        advisor=reply.voice,
        completed=reply.is_over,
        content=reply.text or "",
        error=None if reply.error_code is None else ReplyError(code=reply.error_code, message=reply.error or ""),
        phase=None if phase is None else PhaseOut.model_validate(phase),
        profile=None if profile is None else ReplyProfile(preset=profile["preset"], reason=profile["reason"]),
        memories=background.get("memory", {}).get("memories", {}),
    )


def tally_out(votes: Mapping[str, Mapping[str, Any]], groups: Sequence[Sequence[str]] = ()) -> TallyOut:
    from denizen.panel.voting import tally

    told = tally(votes, groups)
    return TallyOut(
        leading=told.leading,
        camps=[filled(CampOut, each, advisors=list(each.voices)) for each in told.camps],
        dissent={one: dict(others) for one, others in told.dissent.items()},
    )


def round_out(told: Round, message: Message | None = None) -> RoundOut:
    by_part = {
        part: {each.voice: reply_out(each) for each in told.replies if each.part == part}
        for part in ("synthesis", "check")
    }
    return RoundOut(
        id=told.id,
        panel=told.panel_id,
        turn=told.turn,
        step=told.step,
        kind=told.kind,
        message_id=told.message_id,
        message=None if message is None else message_out(message),
        asked_by=told.asked_by,
        question=told.question,
        advisor_responses={each.voice: reply_out(each) for each in told.spoken},
        all_completed=told.all_completed,
        synthesis=next(iter(by_part["synthesis"].values()), None),
        checks=by_part["check"],
        tally=tally_out(told.votes, told.groups) if told.votes else None,
        input_tokens=sum(each.input_tokens for each in told.replies),
        output_tokens=sum(each.output_tokens for each in told.replies),
        cost_micros=sum(each.cost_micros or 0 for each in told.replies),
        created_at=moment(told.created_at),
        completed_at=_time(told.completed_at),
    )


class VoiceChoice(RequestBody):
    """The advisor of a request."""

    model_config = body_example(advisor=BUBER)

    advisor: Annotated[
        str | None, Field(description="Its id, or `assistant` or `synthesis`; null: everyone it applies to.")
    ] = None


class CrosstalkRequest(RequestBody):
    """The number of cross-talk rounds."""

    model_config = body_example(rounds=1)

    rounds: Annotated[int, Field(ge=1, le=MOST_CROSSTALK)] = 1


class VoteRequest(RequestBody):
    """The question of a vote."""

    model_config = body_example(question="Should I sign by Friday?")

    question: Annotated[str, Field(max_length=4_000, description="Empty: the question of the turn.")] = ""


def context_out(shown: AdvisorContext) -> ContextOut:
    return ContextOut(
        lines=[LineOut(role=each.role, text=each.text) for each in shown.lines],
        omitted=[
            OmissionOut(reason=each.reason, count=each.count, advisors=list(each.names), text=each.sentence())
            for each in shown.omitted
        ],
        exact=shown.exact,
        characters=sum(len(each.text) for each in shown.lines),
        model=shown.reply.model,
    )


def foretold_out(told: CostEstimate) -> ForetoldOut:
    return filled(ForetoldOut, told, advisor=told.voice)


def cost_out(told: Iterable[CostEstimate]) -> CostOut:
    listed = [foretold_out(each) for each in told]
    return CostOut(
        advisors=listed,
        input_tokens=sum(each.input_tokens for each in listed),
        output_tokens=sum(each.output_tokens for each in listed),
        cost_micros=_sum([each.cost_micros for each in listed]),
        most_micros=_sum([each.most_micros for each in listed]),
    )


def _sum(amounts: list[int | None]) -> int | None:
    return None if any(each is None for each in amounts) else sum(each or 0 for each in amounts)


def _time(at: int | None) -> datetime | None:
    return None if at is None else moment(at)
