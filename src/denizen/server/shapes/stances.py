"""How an agent stands to its conversations: profiles, states of mind, and what moved them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field, JsonValue

from denizen.agents.inspection import Standing
from denizen.agents.prompt_config import PromptConfig
from denizen.clock import Instant, moment
from denizen.panel import standing
from denizen.profiles.presets import Preset, Presets
from denizen.profiles.router import Choice, route
from denizen.reflection.configuration import Configuration
from denizen.reflection.stance_store import Outcome, PastRun, PastSignal, Stance
from denizen.reflection.state import Complexity, Mood, Skill, StateOfMind
from denizen.reflection.thinking import Tried
from denizen.server.shapes.examples import KITCHEN, NINE, NOOR, THING, asked, given

_STATE = {"mood": "empathetic", "user_skill": "novice", "task_complexity": "simple"}
_STANCE = {
    "space_id": KITCHEN,
    "profile": {"id": "concise", "reason": "rule 'asked-to-be-brief': the message has 'briefly' (first turn)"},
    "state": _STATE,
    "imprints": {},
    "turns": 7,
    "settings": {},
    "updated_at": NINE,
}
_STANDING = {**_STANCE, "space": "Kitchen", "told": "your mood is empathetic", "last": None}
_VOICE = {
    **{name: value for name, value in _STANDING.items() if name not in ("settings", "space")},
    "voice": THING,
    "name": "Martin Buber",
    "reflects": True,
}


class StateOut(BaseModel):
    """A state of mind."""

    model_config = given(**_STATE)

    mood: Mood
    user_skill: Skill
    task_complexity: Complexity

    @classmethod
    def of(cls, state: StateOfMind) -> StateOut:
        return cls(mood=state.mood, user_skill=state.user_skill, task_complexity=state.task_complexity)


class ProfileOut(BaseModel):
    """A prompt profile, and why it was chosen."""

    model_config = given(id="concise", reason="default (first turn)")

    id: Annotated[str | None, Field(description="Null: none was.")]
    reason: str

    @classmethod
    def of(cls, choice: Choice) -> ProfileOut:
        return cls(id=choice.preset, reason=choice.reason)


class StanceOut(BaseModel):
    """How an agent stands to a conversation."""

    model_config = given(**_STANCE)

    space_id: str
    profile: ProfileOut
    state: StateOut
    imprints: Annotated[dict[str, str], Field(description="What its metaprompts keep of the conversation.")]
    turns: Annotated[int, Field(description="Turns that profiles were chosen for or that were reflected on.")]
    settings: Annotated[dict[str, JsonValue], Field(description="What holds here instead of the agent's settings.")]
    updated_at: datetime | None

    @classmethod
    def of(cls, stance: Stance) -> StanceOut:
        return cls(
            space_id=stance.space_id,
            profile=ProfileOut(id=stance.preset, reason=stance.preset_reason),
            state=StateOut.of(stance.state),
            imprints=dict(stance.imprints),
            turns=max(stance.turns, stance.reflected_turns),
            settings=dict(stance.overrides),
            updated_at=moment(Instant(stance.updated_at)) if stance.updated_at else None,
        )


class SetStance(BaseModel):
    """What shall hold in a conversation instead of the agent's settings; what is not there is as the agent has it."""

    model_config = asked(preset="concise", reflection={"profile": "basic"})

    preset: Annotated[str | None, Field(description="One preset, whatever the rules say.", max_length=100)] = None
    mode: Annotated[str | None, Field(description="What rules and defaults know it by.", max_length=100)] = None
    reflection: Annotated[
        dict[str, JsonValue] | None, Field(description="As in a definition: `profile`, `sentiment`, `metaprompts`, …")
    ] = None


class SetState(BaseModel):
    """What a state of mind shall be; what is not there stays."""

    model_config = asked(mood="empathetic", user_skill="novice")

    mood: Mood | None = None
    user_skill: Skill | None = None
    task_complexity: Complexity | None = None


class RunOut(BaseModel):
    """A metaprompt that was asked, or what someone did by hand, and what came of it."""

    model_config = given(
        number=4,
        cycle=12,
        metaprompt="frustration_recovery",
        cause="user_frustrated",
        outcome="changed",
        reason="They have asked three times.",
        state=_STATE,
        by=None,
        at=NINE,
    )

    number: int
    cycle: Annotated[
        int | None, Field(description="The cycle, in a panel the turn, that it came after; null: by hand.")
    ]
    metaprompt: Annotated[str | None, Field(description="Null where someone set or reset the state.")]
    cause: Annotated[str, Field(description="A signal, `interval`, `manual`, `set` or `reset`.")]
    outcome: Outcome
    reason: str
    state: Annotated[StateOut, Field(description="After it.")]
    by: Annotated[str | None, Field(description="Who did it, by hand.")]
    at: datetime

    @classmethod
    def of(cls, run: PastRun) -> RunOut:
        return cls(
            number=run.number,
            cycle=run.cycle,
            metaprompt=run.metaprompt,
            cause=run.cause,
            outcome=run.outcome,
            reason=run.reason,
            state=StateOut.of(run.state),
            by=run.by_id,
            at=moment(run.at),
        )


class StandingOut(StanceOut):
    """How an agent stands to a conversation, and what last became of its state of mind there."""

    model_config = given(**_STANDING)

    space: Annotated[str, Field(description="The name of the conversation.")]
    told: Annotated[str | None, Field(description="What the agent is told of its state of mind.")]
    last: RunOut | None

    @classmethod
    def standing(cls, each: Standing) -> StandingOut:
        return cls(
            **StanceOut.of(each.stance).model_dump(),
            space=each.space_name,
            told=each.stance.state.line(),
            last=None if each.last is None else RunOut.of(each.last),
        )


class StanceList(BaseModel):
    """How an agent stands to its conversations, those that changed last first. At most 100."""

    model_config = given(stances=[_STANDING])

    stances: list[StandingOut]


class VoiceStanceOut(BaseModel):
    """How a voice of a panel stands to the people in it, and what last became of its state of mind."""

    model_config = given(**_VOICE)

    voice: Annotated[str, Field(description="The id of the advisor, or `assistant`.")]
    name: str
    reflects: Annotated[bool, Field(description="Whether it thinks over the turns that it has answered.")]
    space_id: Annotated[str, Field(description="The panel.")]
    profile: Annotated[ProfileOut, Field(description="That of its last answer.")]
    state: StateOut
    imprints: Annotated[dict[str, str], Field(description="What its metaprompts keep of the conversation.")]
    turns: Annotated[int, Field(description="Turns that profiles were chosen for or that it has reflected on.")]
    updated_at: datetime | None
    told: Annotated[str | None, Field(description="What it is told of its state of mind.")]
    last: RunOut | None

    @classmethod
    def of(cls, each: standing.Standing) -> VoiceStanceOut:
        return cls(
            **StanceOut.of(each.stance).model_dump(exclude={"settings"}),
            voice=each.voice.id,
            name=each.voice.name,
            reflects=each.voice.reflection.is_on,
            told=each.stance.state.line(),
            last=None if each.last is None else RunOut.of(each.last),
        )


class VoiceStanceList(BaseModel):
    """How the voices of a panel stand, in its order; without advisors, the assistant."""

    model_config = given(stances=[_VOICE])

    stances: list[VoiceStanceOut]


class RunPage(BaseModel):
    """How a state of mind came to be what it is, the newest first."""

    runs: list[RunOut]
    next: Annotated[int | None, Field(description="For `before`, if there are more.")]


class SignalOut(BaseModel):
    """What how people feel, or what went wrong, amounted to."""

    model_config = given(
        number=9, cycle=12, person=NOOR, name="user_frustrated", rule="score -0.81, strongly", score=-0.81, at=NINE
    )

    number: int
    cycle: Annotated[int, Field(description="The cycle, in a panel the turn, after which it was seen.")]
    person: Annotated[str | None, Field(description="Whom it is about; null: nobody.")]
    name: str
    rule: Annotated[str, Field(description="By which it was seen.")]
    score: Annotated[float | None, Field(description="From -1 to 1.")]
    at: datetime

    @classmethod
    def of(cls, signal: PastSignal) -> SignalOut:
        return cls(
            number=signal.number,
            cycle=signal.cycle,
            person=signal.person_id,
            name=signal.name,
            rule=signal.rule,
            score=signal.score,
            at=moment(signal.at),
        )


class SignalPage(BaseModel):
    """The signals of a conversation, the newest first."""

    signals: list[SignalOut]
    next: Annotated[int | None, Field(description="For `before`, if there are more.")]


class TryMetaprompt(BaseModel):
    """A metaprompt to be asked now: by its id, or with a template of its own."""

    model_config = asked(metaprompt="frustration_recovery")

    metaprompt: Annotated[str | None, Field(max_length=100)] = None
    template: Annotated[str | None, Field(min_length=1, max_length=8_000)] = None
    apply: Annotated[bool, Field(description="Whether the answer changes the state of mind.")] = False


class TriedOut(BaseModel):
    """What came of a metaprompt that was asked by hand."""

    model_config = given(
        prompt="The person you talk with seems frustrated …", failed=None, reason="", before=_STATE, after=_STATE,
        applied=False,
    )  # fmt: skip

    prompt: Annotated[str, Field(description="What the model was asked.")]
    failed: Annotated[str | None, Field(description="Why nothing came of it; null: something did.")]
    reason: Annotated[str, Field(description="The model's.")]
    before: StateOut
    after: Annotated[StateOut, Field(description="What the state of mind is now, or would be.")]
    applied: bool

    @classmethod
    def of(cls, tried: Tried) -> TriedOut:
        adjustment = tried.run.adjustment
        return cls(
            prompt=tried.prompt,
            failed=tried.run.why_not if adjustment is None else None,
            reason="" if adjustment is None else adjustment.why,
            before=StateOut.of(tried.before.state),
            after=StateOut.of(tried.after),
            applied=tried.applied,
        )


class ReflectionNames(BaseModel):
    """What `reflection` of an agent, a panel or an advisor can name."""

    model_config = given(profiles=["off", "basic"], metaprompts=["frustration_recovery"])

    profiles: Annotated[list[str], Field(description="The quick-start profiles.")]
    metaprompts: Annotated[list[str], Field(description="For `sentiment.presets`, and to be asked by hand.")]

    @classmethod
    def of(cls, known: Configuration) -> ReflectionNames:
        return cls(profiles=list(known.profiles), metaprompts=list(known.metaprompts))


class PresetOut(BaseModel):
    """A prompt profile that can be chosen."""

    id: str
    label: str
    description: str
    addons: list[str]
    text: Annotated[str, Field(description="The instructions that it adds.")]


class PresetList(BaseModel):
    """The presets of the house, in the order of its file; none where there is no file."""

    model_config = given(
        presets=[{"id": "concise", "label": "Concise", "description": "", "addons": ["concise"], "text": "Be brief."}],
        metaprompts=["frustration_recovery"],
        profiles=["off", "basic"],
    )

    presets: list[PresetOut]
    metaprompts: Annotated[list[str], Field(description="The metaprompts that can be named.")]
    profiles: Annotated[list[str], Field(description="The quick-start profiles of reflection.")]

    @classmethod
    def of(cls, prompt_config: PromptConfig) -> PresetList:
        presets, known = prompt_config.presets(), prompt_config.configuration()
        found = [] if presets is None else [_preset(presets, each) for each in presets.presets.values()]
        return cls(presets=found, metaprompts=list(known.metaprompts), profiles=list(known.profiles))


def _preset(presets: Presets, each: Preset) -> PresetOut:
    return PresetOut(
        id=each.id,
        label=each.label,
        description=each.description,
        addons=list(each.addons),
        text=presets.text(each.id),
    )


class TryProfile(BaseModel):
    """A message that somebody might say."""

    model_config = asked(text="Tell me briefly.", mode="ada")

    text: Annotated[str, Field(max_length=100_000)]
    mode: Annotated[str, Field(max_length=100)] = ""


class TriedProfile(BaseModel):
    """What the rules say of a message."""

    model_config = given(id="concise", reason="rule 'asked-to-be-brief': the message has 'briefly'", text="Be brief.")

    id: str | None
    reason: str
    text: str

    @classmethod
    def of(cls, presets: Presets | None, mode: str, text: str) -> TriedProfile:
        """What they say of it, as if it were the first message of a conversation."""
        if presets is None:
            return cls(id=None, reason="there is no file of presets", text="")
        found = route(presets, mode, text)
        told = "" if found.preset is None else presets.text(found.preset)
        return cls(id=found.preset, reason=found.reason, text=told)
