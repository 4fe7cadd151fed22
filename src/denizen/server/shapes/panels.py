"""Panels, their advisors, and rounds with what each voice answers in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from denizen.clock import moment
from denizen.panel.advisors import Advisor
from denizen.panel.context import Role
from denizen.panel.costs import Foretold
from denizen.panel.panels import Panel
from denizen.panel.phases import Phase
from denizen.panel.rounds import Kind, Part, Reply, Round, State
from denizen.panel.settings import MOST_ADVISORS, MOST_CROSSTALK, PanelSettings
from denizen.panel.suggesting import COUNT, MOST, Sort, Suggestion
from denizen.panel.taking import Shown
from denizen.panel.voting import tally
from denizen.reflection.settings import ReflectionSettings
from denizen.server.schemas import MessageOut, NamedOrganization
from denizen.server.shapes.examples import KITCHEN, NINE, NOOR, THING, asked, given
from denizen.server.shapes.given import Given
from denizen.spaces.posting import MESSAGE_CHARACTERS, Message

_BUBER = "019b8d40-1a00-7e35-9d4c-6f7a8b9c0d1e"


class AdvisorIn(Given):
    """An advisor, as you describe it."""

    model_config = asked(name="Martin Buber", description="You look for the encounter.", group="Philosophers")

    name: str
    handle: Annotated[
        str | None, Field(description="`@handle` addresses it; made from the name where it is not given.")
    ] = None
    description: Annotated[str, Field(max_length=20_000, description='Who it is; it stands behind "You are …".')] = ""
    colour: Annotated[str, Field(description="`#rrggbb`; empty: one is given to it.")] = ""
    group: Annotated[str, Field(max_length=60, description="`@group` addresses all of it.")] = ""
    active: Annotated[bool, Field(description="Whether it answers when nobody is addressed.")] = True
    model: Annotated[str | None, Field(description="null: the panel's.")] = None
    max_tokens: int | None = None
    reasoning: Annotated[bool, Field(description="Whether a model that can think before it speaks does so.")] = False
    phases: Annotated[list[Phase] | None, Field(description="Its own, instead of the panel's.")] = None
    assertions: Annotated[list[str], Field(max_length=20, description="What is expected of each of its replies.")] = (
        Field(default_factory=list[str])
    )
    reflection: Annotated[ReflectionSettings | None, Field(description="Its own, instead of the panel's.")] = None


class AdvisorChange(Given):
    """What shall be otherwise with an advisor."""

    model_config = asked(active=False)

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


class AdvisorOut(BaseModel):
    """A voice of a panel."""

    model_config = given(
        id=_BUBER, handle="martin-buber", name="Martin Buber", description="You look for the encounter.",
        colour="#2f6f9f", group="Philosophers", active=True, position=1, model=None, max_tokens=None, reasoning=False,
        phases=None, assertions=[], reflection=None,
    )  # fmt: skip

    id: str
    handle: str
    name: str
    description: str
    colour: str
    group: str
    active: bool
    position: int
    model: str | None
    max_tokens: int | None
    reasoning: bool
    phases: list[Phase] | None
    assertions: list[str]
    reflection: Annotated[ReflectionSettings | None, Field(description="Its own; null: the panel's.")]

    @classmethod
    def of(cls, advisor: Advisor) -> AdvisorOut:
        own = advisor.settings
        return cls(
            id=advisor.id,
            handle=advisor.handle,
            name=advisor.name,
            description=advisor.description,
            colour=advisor.colour,
            group=advisor.group,
            active=advisor.active,
            position=advisor.position,
            model=own.model,
            max_tokens=own.max_tokens,
            reasoning=own.reasoning,
            phases=None if own.phases is None else list(own.phases),
            assertions=list(own.assertions),
            reflection=own.reflection,
        )


class AdvisorList(BaseModel):
    """Who advises in a panel, in order."""

    advisors: list[AdvisorOut]

    @classmethod
    def of(cls, listed: Iterable[Advisor]) -> AdvisorList:
        return cls(advisors=[AdvisorOut.of(each) for each in listed])


class AdvisorOrder(Given):
    """In which order the advisors stand."""

    model_config = asked(advisors=[_BUBER])

    advisors: Annotated[list[str], Field(max_length=MOST_ADVISORS, description="Ids; the others follow as they stood.")]


class AdvisorFile(BaseModel):
    """Advisors, to be taken to another panel."""

    model_config = given(format="denizen.advisors/1", advisors=[{"name": "Martin Buber"}])

    format: str
    advisors: list[dict[str, Any]]


class AdvisorImport(Given):
    """What `GET …/advisors/export` gave."""

    model_config = asked(format="denizen.advisors/1", advisors=[{"name": "Martin Buber"}], replace=False)

    format: str = "denizen.advisors/1"
    advisors: Annotated[list[dict[str, Any]], Field(max_length=MOST_ADVISORS)]
    replace: Annotated[bool, Field(description="Whether those that are there are removed.")] = False

    @property
    def document(self) -> dict[str, Any]:
        """The advisors as they were exported."""
        return {"format": self.format, "advisors": self.advisors}


class GroupChange(Given):
    """Whether the advisors of a group answer."""

    model_config = asked(group="Philosophers", active=False)

    group: str
    active: bool


class SuggestRequest(Given):
    """What the advisors shall help to think about."""

    model_config = asked(topic="Whether to leave a safe job for a bakery.", count=8)

    topic: Annotated[str, Field(min_length=1, max_length=8_000)]
    count: Annotated[int, Field(ge=1, le=MOST)] = COUNT


class SuggestionOut(BaseModel):
    """An advisor that might be of use. Post it to `…/advisors` to have it."""

    model_config = given(
        name="A baker of thirty years", kind="role", description="You get up at two.", reason="Knows the nights."
    )

    name: str
    kind: Sort
    description: str
    reason: str

    @classmethod
    def of(cls, suggestion: Suggestion) -> SuggestionOut:
        return cls(
            name=suggestion.name,
            kind=suggestion.kind,
            description=suggestion.description,
            reason=suggestion.reason,
        )


class SuggestionList(BaseModel):
    """What a model proposes."""

    suggestions: list[SuggestionOut]


class PanelCreate(Given):
    """A new panel. You are in it, and run it."""

    model_config = asked(
        name="Board", advisors=[{"name": "Martin Buber"}, {"name": "Seth Godin"}], settings={"synthesis": "always"}
    )

    name: str
    private: Annotated[bool, Field(description="Whether those who are not in it may not even know of it.")] = False
    members: Annotated[
        list[str], Field(max_length=200, description="Who else may ask it: ids, or handles with their `@`.")
    ] = Field(default_factory=list[str])
    advisors: Annotated[list[AdvisorIn], Field(max_length=MOST_ADVISORS)] = Field(default_factory=list[AdvisorIn])
    settings: Annotated[dict[str, Any], Field(description="As in `PATCH /api/panels/{panel_id}`.")] = Field(
        default_factory=dict[str, Any]
    )


class PanelChange(Given):
    """What shall be otherwise with a panel."""

    model_config = asked(settings={"crosstalk": 1, "synthesis": "always", "reflection": {"profile": "basic"}})

    name: str | None = None
    settings: Annotated[
        dict[str, Any], Field(description="Only the settings that change; those of `PanelOut.settings`.")
    ] = Field(default_factory=dict[str, Any])


class PanelOut(BaseModel):
    """A space whose advisors answer."""

    model_config = given(id=KITCHEN, name="Board", private=False, turns=3, settings={}, advisors=[])

    id: Annotated[str, Field(description="Also the id of its space.")]
    name: str
    private: bool
    turns: Annotated[int, Field(description="How many messages were put to it.")]
    settings: PanelSettings
    advisors: list[AdvisorOut]

    @classmethod
    def of(cls, panel: Panel, advisors: Iterable[Advisor]) -> PanelOut:
        return cls(
            id=panel.id,
            name=panel.name,
            private=panel.space.private,
            turns=panel.turns,
            settings=panel.settings,
            advisors=[AdvisorOut.of(each) for each in advisors],
        )


class PanelList(BaseModel):
    """The panels you are in."""

    panels: list[PanelOut]


class AskPanel(Given):
    """A message to a panel."""

    model_config = asked(text="@martin-buber What do I overlook?")

    text: Annotated[
        str,
        Field(
            max_length=MESSAGE_CHARACTERS,
            description="Markdown. `@handle` of advisors or groups: only those answer.",
        ),
    ]
    organization_id: NamedOrganization = None


class PhaseOut(BaseModel):
    """Where an advisor is in its phases: "question 2 of 3"."""

    name: str
    turn: int
    of: int | None


class ReplyProfile(BaseModel):
    """The [prompt profile](profiles.md) that an advisor had in a turn, and why."""

    preset: str | None
    reason: str


class ReplyError(BaseModel):
    """Why a voice has not answered. Decide by `code`."""

    code: str
    message: str


class ReplyOut(BaseModel):
    """What one voice answers in one round."""

    model_config = given(
        advisor=_BUBER, part="reply", name="Martin Buber", state="done", completed=True, content="Whom did you ask?",
        thinking=None, error=None, phase={"name": "question", "turn": 2, "of": 3},
        profile={"preset": "short", "reason": "default"}, memories={"user": 1}, result=None, epoch=1, model="demo",
        input_tokens=412, output_tokens=9, cost_micros=0, started_at=NINE, ended_at=NINE,
    )  # fmt: skip

    advisor: Annotated[str, Field(description="The id of the advisor; or `assistant`, `synthesis`.")]
    part: Part
    name: Annotated[str, Field(description="What it was called then.")]
    state: State
    completed: Annotated[bool, Field(description="Whether it is done, failed or cancelled.")]
    content: Annotated[
        str, Field(description="What it said; empty until it is done. While it runs, see `panel.delta`.")
    ]
    thinking: Annotated[
        str | None, Field(description="What a reasoning model thought before it; never shown to others.")
    ]
    error: ReplyError | None
    phase: PhaseOut | None
    profile: Annotated[ReplyProfile | None, Field(description="Null where there are no profiles.")]
    memories: Annotated[
        dict[str, int], Field(description="How many memories of which scope it was told; never what they say.")
    ]
    result: Annotated[
        dict[str, Any] | None,
        Field(description="Of a vote: position, confidence, reason. Of a check: verdicts, passed."),
    ]
    epoch: Annotated[int, Field(description="Of the deltas that belong to it; goes up with each new attempt.")]
    model: str | None
    input_tokens: int
    output_tokens: int
    cost_micros: Annotated[int | None, Field(description="Millionths of a dollar; null: the price is unknown.")]
    started_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def of(cls, reply: Reply) -> ReplyOut:
        made_of = reply.recipe or {}
        phase, background = made_of.get("phase"), made_of.get("background", {})
        profile = background.get("profile")
        return cls(
            advisor=reply.voice,
            part=reply.part,
            name=reply.name,
            state=reply.state,
            completed=reply.is_over,
            content=reply.text or "",
            thinking=reply.thinking,
            error=None if reply.error_code is None else ReplyError(code=reply.error_code, message=reply.error or ""),
            phase=None if phase is None else PhaseOut.model_validate(phase),
            profile=None if profile is None else ReplyProfile(preset=profile["preset"], reason=profile["reason"]),
            memories=background.get("memory", {}).get("memories", {}),
            result=None if reply.result is None else dict(reply.result),
            epoch=reply.epoch,
            model=reply.model,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            cost_micros=reply.cost_micros,
            started_at=_time(reply.started_at),
            ended_at=_time(reply.ended_at),
        )


class CampOut(BaseModel):
    """Those of one position."""

    position: str
    advisors: list[str]
    confidence: float
    weight: float


class TallyOut(BaseModel):
    """What a vote came to."""

    leading: Annotated[str | None, Field(description="null: there is none, or several are as strong.")]
    camps: list[CampOut]
    dissent: Annotated[
        dict[str, dict[str, float]],
        Field(description="How far each advisor stands from each other: 0 the same position, 1 both sure of another."),
    ]

    @classmethod
    def of(cls, votes: Mapping[str, Mapping[str, Any]]) -> TallyOut:
        told = tally(votes)
        return cls(
            leading=told.leading,
            camps=[
                CampOut(
                    position=each.position,
                    advisors=list(each.voices),
                    confidence=each.confidence,
                    weight=each.weight,
                )
                for each in told.camps
            ],
            dissent={one: dict(others) for one, others in told.dissent.items()},
        )


class RoundOut(BaseModel):
    """One time that the voices of a panel were asked: the answer to a message, cross-talk, or a vote."""

    model_config = given(
        type="panel.round", id=THING, panel=KITCHEN, turn=4, step=0, kind="ask", message_id=THING, message=None,
        asked_by=NOOR, question=None, advisor_responses={}, all_completed=True, synthesis=None, checks={}, tally=None,
        input_tokens=0, output_tokens=0, cost_micros=0, created_at=NINE, completed_at=NINE,
    )  # fmt: skip

    type: Literal["panel.round"] = "panel.round"
    id: str
    panel: str
    turn: Annotated[int, Field(description="A message of a person begins one.")]
    step: Annotated[int, Field(description="Within the turn: 0 is the message itself.")]
    kind: Kind
    message_id: Annotated[str, Field(description="Of the message that began the turn.")]
    message: Annotated[MessageOut | None, Field(description="That message, in the round of step 0.")]
    asked_by: str
    question: Annotated[str | None, Field(description="What is voted on; null: what the turn was about.")]
    advisor_responses: Annotated[dict[str, ReplyOut], Field(description="By the id of the advisor, in order.")]
    all_completed: Annotated[bool, Field(description="Whether each is done, failed or cancelled.")]
    synthesis: ReplyOut | None
    checks: Annotated[dict[str, ReplyOut], Field(description="What came of assertions, by the id of the advisor.")]
    tally: TallyOut | None
    input_tokens: int
    output_tokens: int
    cost_micros: int
    created_at: datetime
    completed_at: datetime | None

    @classmethod
    def of(cls, told: Round, message: Message | None = None) -> RoundOut:
        by_part = {
            part: {each.voice: ReplyOut.of(each) for each in told.replies if each.part == part}
            for part in ("synthesis", "check")
        }
        votes = {each.voice: each.result for each in told.spoken if told.kind == "vote" and each.result is not None}
        return cls(
            id=told.id,
            panel=told.panel_id,
            turn=told.turn,
            step=told.step,
            kind=told.kind,
            message_id=told.message_id,
            message=None if message is None else MessageOut.of(message),
            asked_by=told.asked_by,
            question=told.question,
            advisor_responses={each.voice: ReplyOut.of(each) for each in told.spoken},
            all_completed=told.all_completed,
            synthesis=next(iter(by_part["synthesis"].values()), None),
            checks=by_part["check"],
            tally=TallyOut.of(votes) if votes else None,
            input_tokens=sum(each.input_tokens for each in told.replies),
            output_tokens=sum(each.output_tokens for each in told.replies),
            cost_micros=sum(each.cost_micros or 0 for each in told.replies),
            created_at=moment(told.created_at),
            completed_at=_time(told.completed_at),
        )


class RoundPage(BaseModel):
    """Rounds, the oldest first."""

    rounds: list[RoundOut]
    next: Annotated[int | None, Field(description="Give it as `before` for older ones; null: there are none.")]


class VoiceChoice(Given):
    """Whom it is about."""

    model_config = asked(advisor=_BUBER)

    advisor: Annotated[
        str | None, Field(description="Its id, or `assistant` or `synthesis`; null: everyone it applies to.")
    ] = None


class CrosstalkRequest(Given):
    """How often the advisors answer each other."""

    model_config = asked(rounds=1)

    rounds: Annotated[int, Field(ge=1, le=MOST_CROSSTALK)] = 1


class VoteRequest(Given):
    """What the advisors vote on."""

    model_config = asked(question="Should I sign by Friday?")

    question: Annotated[str, Field(max_length=4_000, description="Empty: what the turn was about.")] = ""


class LineOut(BaseModel):
    """One message of a request."""

    role: Role
    text: str


class ContextOut(BaseModel):
    """What a voice was shown when it answered, message by message."""

    model_config = given(
        lines=[{"role": "system", "text": "You are Martin Buber."}], exact=True, characters=21, model="demo"
    )

    lines: list[LineOut]
    exact: Annotated[bool, Field(description="Whether nothing of it was edited, forgotten or answered anew since.")]
    characters: int
    model: str | None

    @classmethod
    def of(cls, shown: Shown) -> ContextOut:
        return cls(
            lines=[LineOut(role=each.role, text=each.text) for each in shown.lines],
            exact=shown.exact,
            characters=sum(len(each.text) for each in shown.lines),
            model=shown.reply.model,
        )


class ForetoldOut(BaseModel):
    """What one voice will use."""

    model_config = given(
        advisor=_BUBER, name="Martin Buber", model="openai:gpt-5.2", input_tokens=812, output_tokens=250,
        most_output_tokens=4_000, cost_micros=4_920, most_micros=57_421,
    )  # fmt: skip

    advisor: str
    name: str
    model: str
    input_tokens: int
    output_tokens: Annotated[int, Field(description="Of a reply of usual length.")]
    most_output_tokens: int
    cost_micros: Annotated[int | None, Field(description="null: the price is unknown.")]
    most_micros: int | None

    @classmethod
    def of(cls, told: Foretold) -> ForetoldOut:
        return cls(
            advisor=told.voice,
            name=told.name,
            model=told.model,
            input_tokens=told.input_tokens,
            output_tokens=told.output_tokens,
            most_output_tokens=told.most_output_tokens,
            cost_micros=told.cost_micros,
            most_micros=told.most_micros,
        )


class CostOut(BaseModel):
    """What a message would cost."""

    model_config = given(
        advisors=[], input_tokens=812, output_tokens=250, cost_micros=4_920, most_micros=57_421,
    )  # fmt: skip

    advisors: list[ForetoldOut]
    input_tokens: int
    output_tokens: int
    cost_micros: Annotated[int | None, Field(description="null: the price of some model is unknown.")]
    most_micros: int | None

    @classmethod
    def of(cls, told: Iterable[Foretold]) -> CostOut:
        listed = [ForetoldOut.of(each) for each in told]
        return cls(
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
