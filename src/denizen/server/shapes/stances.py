"""The JSON of prompt profiles and states of mind of agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field, JsonValue

from denizen.agents.preset_changes import PresetsDocument
from denizen.clock import Instant, moment
from denizen.panel import advisor_stances
from denizen.profiles.presets import Preset, Presets
from denizen.profiles.router import route
from denizen.reflection.configuration import Configuration
from denizen.reflection.stance_store import PastRun, PastSignal, Stance
from denizen.reflection.state import Complexity, Mood, Skill, StateOfMind
from denizen.server.shapes.filling import filled
from denizen.shapes.examples import body_example
from denizen.shapes.stances import (
    PresetList,
    PresetOut,
    PresetsOut,
    ProfileOut,
    ReflectionNames,
    RunOut,
    SignalOut,
    StanceOut,
    StandingOut,
    StateOut,
    TriedOut,
    TriedProfile,
    VoiceStanceOut,
)

if TYPE_CHECKING:
    from denizen.agents.inspection import InspectedStance
    from denizen.reflection.thinking import MetapromptTrial


def state_out(state: StateOfMind) -> StateOut:
    return filled(StateOut, state)


def stance_out(stance: Stance) -> StanceOut:
    return StanceOut(
        space_id=stance.space_id,
        profile=ProfileOut(id=stance.preset, reason=stance.preset_reason),
        state=state_out(stance.state),
        imprints=dict(stance.imprints),
        turns=max(stance.turns, stance.reflected_turns),
        settings=dict(stance.overrides),
        updated_at=moment(Instant(stance.updated_at)) if stance.updated_at else None,
    )


class SetStance(BaseModel):
    """Settings of one conversation that replace the agent's own. Fields that are not sent stay the agent's."""

    model_config = body_example(preset="concise", reflection={"profile": "basic"})

    preset: Annotated[str | None, Field(description="Always use this preset.", max_length=100)] = None
    mode: Annotated[str | None, Field(description="The mode that rules and defaults use.", max_length=100)] = None
    reflection: Annotated[
        dict[str, JsonValue] | None, Field(description="As in a definition: `profile`, `sentiment`, `metaprompts`, …")
    ] = None


class SetState(BaseModel):
    """A state of mind. Fields that are not sent stay unchanged."""

    model_config = body_example(mood="empathetic", user_skill="novice")

    mood: Mood | None = None
    user_skill: Skill | None = None
    task_complexity: Complexity | None = None


def run_out(run: PastRun) -> RunOut:
    return filled(RunOut, run, by=run.by_id)


def standing_out(each: InspectedStance) -> StandingOut:
    return StandingOut(
        **stance_out(each.stance).model_dump(),
        space=each.space_name,
        told=each.stance.state.line(),
        last=None if each.last is None else run_out(each.last),
    )


def voice_stance_out(each: advisor_stances.VoiceStance) -> VoiceStanceOut:
    return VoiceStanceOut(
        **stance_out(each.stance).model_dump(exclude={"settings"}),
        voice=each.voice.id,
        name=each.voice.name,
        reflects=each.voice.reflection.is_on,
        told=each.stance.state.line(),
        last=None if each.last is None else run_out(each.last),
    )


def signal_out(signal: PastSignal) -> SignalOut:
    return filled(SignalOut, signal, person=signal.person_id)


class TryMetaprompt(BaseModel):
    """A metaprompt to be asked now: by its id, or with a template of its own."""

    model_config = body_example(metaprompt="frustration_recovery")

    metaprompt: Annotated[str | None, Field(max_length=100)] = None
    template: Annotated[str | None, Field(min_length=1, max_length=8_000)] = None
    apply: Annotated[bool, Field(description="Whether the answer changes the state of mind.")] = False


def tried_out(tried: MetapromptTrial) -> TriedOut:
    adjustment = tried.run.adjustment
    return TriedOut(
        prompt=tried.prompt,
        failed=tried.run.why_not if adjustment is None else None,
        reason="" if adjustment is None else adjustment.why,
        before=state_out(tried.before.state),
        after=state_out(tried.after),
        applied=tried.applied,
    )


def reflection_names_out(known: Configuration) -> ReflectionNames:
    return ReflectionNames(profiles=list(known.profiles), metaprompts=list(known.metaprompts))


def preset_list_out(presets: Presets | None, known: Configuration) -> PresetList:
    found = [] if presets is None else [_preset(presets, each) for each in presets.presets.values()]
    return PresetList(presets=found, metaprompts=list(known.metaprompts), profiles=list(known.profiles))


def _preset(presets: Presets, each: Preset) -> PresetOut:
    return filled(PresetOut, each, text=presets.text(each.id))


class TryProfile(BaseModel):
    """A message to try the rules with."""

    model_config = body_example(text="Tell me briefly.", mode="ada")

    text: Annotated[str, Field(max_length=100_000)]
    mode: Annotated[str, Field(max_length=100)] = ""
    presets: Annotated[
        dict[str, JsonValue] | None,
        Field(description="The content of a presets file, to try it before it is saved; null: those that apply."),
    ] = None


class ChangePresets(BaseModel):
    """Presets for the organization."""

    model_config = body_example(
        document={
            "routing": {"defaultPresetId": "short"},
            "presets": [{"id": "short", "addonPromptKeys": ["concise"]}],
            "rules": [{"presetId": "short", "anyKeywords": ["briefly"]}],
        }
    )

    document: Annotated[
        dict[str, JsonValue],
        Field(description="The content of a presets file. `addonPrompts` has the texts of add-ons by key."),
    ]


def presets_out(found: PresetsDocument) -> PresetsOut:
    return filled(PresetsOut, found)


def tried_profile_out(presets: Presets | None, mode: str, text: str) -> TriedProfile:
    """Applies the presets as if it were the first message of a conversation."""
    if presets is None:
        return TriedProfile(id=None, reason="prompt profiles are off", text="")
    found = route(presets, mode, text)
    told = "" if found.preset is None else presets.text(found.preset)
    return TriedProfile(id=found.preset, reason=found.reason, text=told)
