"""Prompt profiles and states of mind."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue

from denizen.shapes.examples import NOOR, THING, example
from denizen.shapes.value import NextBefore, Open, Value
from denizen.shapes.vocabulary import Complexity, Mood, PresetSource, ReflectionOutcome, Skill


class StateOut(Value):
    """A state of mind."""

    model_config = example(mood="empathetic", user_skill="novice", task_complexity="simple")

    mood: Open[Mood]
    user_skill: Open[Skill]
    task_complexity: Open[Complexity]


class ProfileOut(Value):
    """A prompt profile, and why it was chosen."""

    model_config = example(id="concise", reason="default (first turn)")

    id: Annotated[str | None, Field(description="Null: none.")]
    reason: str


class StanceOut(Value):
    """The profile and state of mind of an agent in a conversation."""

    space_id: str
    profile: ProfileOut
    state: StateOut
    imprints: Annotated[
        dict[str, str], Field(description="Texts that its metaprompts stored about the conversation, by name.")
    ]
    turns: Annotated[int, Field(description="Turns that profiles were chosen for or that were reflected on.")]
    settings: Annotated[dict[str, JsonValue], Field(description="Settings that replace the agent's own here.")]
    updated_at: datetime | None


class RunOut(Value):
    """A metaprompt that was asked, or a change by hand, and its result."""

    model_config = example(cause="user_frustrated", reason="They have asked three times.")

    number: int
    cycle: Annotated[
        int | None, Field(description="The cycle, in a panel the turn, that it came after; null: by hand.")
    ]
    metaprompt: Annotated[str | None, Field(description="Null where someone set or reset the state.")]
    cause: Annotated[str, Field(description="A signal, `interval`, `manual`, `set` or `reset`.")]
    outcome: Open[ReflectionOutcome]
    reason: str
    state: Annotated[StateOut, Field(description="The state of mind afterwards.")]
    by: Annotated[str | None, Field(description="The person, for a change by hand.")]
    at: datetime


class StandingOut(StanceOut):
    """The profile and state of mind of an agent in a conversation, with the last change."""

    model_config = example(told="your mood is empathetic")

    space: Annotated[str, Field(description="The name of the conversation.")]
    told: Annotated[str | None, Field(description="What the agent is told of its state of mind.")]
    last: RunOut | None


class StanceList(Value):
    """Profiles and states of mind of an agent, last changed first. At most 100."""

    stances: list[StandingOut]


class VoiceStanceOut(Value):
    """The profile and state of mind of an advisor, with the last change."""

    model_config = example(told="your mood is empathetic", voice=THING, name="Martin Buber")

    voice: Annotated[str, Field(description="The id of the advisor, or `assistant`.")]
    name: str
    reflects: Annotated[bool, Field(description="Whether it reflects on its turns.")]
    space_id: Annotated[str, Field(description="The panel.")]
    profile: Annotated[ProfileOut, Field(description="The profile of its last answer.")]
    state: StateOut
    imprints: Annotated[
        dict[str, str], Field(description="Texts that its metaprompts stored about the conversation, by name.")
    ]
    turns: Annotated[int, Field(description="Turns that profiles were chosen for or that it has reflected on.")]
    updated_at: datetime | None
    told: Annotated[str | None, Field(description="What it is told of its state of mind.")]
    last: RunOut | None


class VoiceStanceList(Value):
    """Profiles and states of mind of the advisors, in order; without advisors, of the assistant."""

    stances: list[VoiceStanceOut]


class RunPage(Value):
    """Changes of a state of mind, newest first."""

    runs: list[RunOut]
    next: NextBefore[int]


class SignalOut(Value):
    """A signal from the sentiment of people, or from errors."""

    model_config = example(person=NOOR, name="user_frustrated", rule="score -0.81, strongly")

    number: int
    cycle: Annotated[int, Field(description="The cycle, in a panel the turn, after which it was detected.")]
    person: Annotated[str | None, Field(description="The person that it is about; null: nobody.")]
    name: str
    rule: Annotated[str, Field(description="The rule that detected it.")]
    score: Annotated[float | None, Field(description="From -1 to 1.")]
    at: datetime


class SignalPage(Value):
    """The signals of a conversation, newest first."""

    signals: list[SignalOut]
    next: NextBefore[int]


class TriedOut(Value):
    """The result of a metaprompt that was asked by hand."""

    model_config = example(prompt="The person you talk with seems frustrated …")

    prompt: Annotated[str, Field(description="What the model was asked.")]
    failed: Annotated[str | None, Field(description="Why it failed; null: it did not.")]
    reason: Annotated[str, Field(description="The reason that the model gave.")]
    before: StateOut
    after: Annotated[StateOut, Field(description="What the state of mind is now, or would be.")]
    applied: bool


class ReflectionNames(Value):
    """Names for the `reflection` setting of an agent, a panel or an advisor."""

    profiles: Annotated[list[str], Field(description="The quick-start profiles.")]
    metaprompts: Annotated[list[str], Field(description="For `sentiment.presets`, and to be asked by hand.")]


class PromptProfileOut(Value):
    """The prompt profile of an agent in a conversation."""

    model_config = example(id="short", reason="rule 'asked': the message has 'briefly' (first turn)")

    id: Annotated[str | None, Field(description="The preset; null: none.")]
    reason: Annotated[str, Field(description="Why it was chosen.")]


class PresetOut(Value):
    """A prompt profile that can be chosen."""

    id: str
    label: str
    description: str
    addons: list[str]
    text: Annotated[str, Field(description="The instructions that it adds.")]


class PresetList(Value):
    """The presets that apply in your organization, in the order of their file."""

    presets: list[PresetOut]
    metaprompts: Annotated[list[str], Field(description="The metaprompts that can be named.")]
    profiles: Annotated[list[str], Field(description="The quick-start profiles of reflection.")]


class PresetsOut(Value):
    """The presets that apply in your organization, in the format of a presets file."""

    model_config = example(addons={"concise": "Be brief."})

    source: Annotated[
        Open[PresetSource],
        Field(description="`organization`: its own; `server`: the file of the server; `shipped`: Denizen's."),
    ]
    document: dict[str, JsonValue]
    addons: Annotated[dict[str, str], Field(description="The texts of all add-ons that presets can use, by key.")]
    warnings: Annotated[list[str], Field(description="Parts of the document that are ignored or probably mistakes.")]


class TriedProfile(Value):
    """The profile of a message by the rules."""

    model_config = example(id="concise", reason="rule 'asked-to-be-brief': the message has 'briefly'", text="Be brief.")

    id: str | None
    reason: str
    text: str
