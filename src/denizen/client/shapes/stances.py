"""Prompt profiles and states of mind."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import JsonValue

from denizen.client.shapes.value import Value


class StateOfMind(Value):
    """How an agent is disposed in a conversation."""

    mood: str
    user_skill: str
    task_complexity: str


class Profile(Value):
    """A prompt profile, and why it was chosen."""

    id: str | None
    reason: str


class Stance(Value):
    """How an agent stands to a conversation."""

    space_id: str
    profile: Profile
    state: StateOfMind
    imprints: Mapping[str, str] = {}
    turns: int = 0
    settings: Mapping[str, JsonValue] = {}
    updated_at: datetime | None = None


class Reflection(Value):
    """A metaprompt that was asked, or what someone did by hand, and what came of it."""

    number: int
    cycle: int | None
    metaprompt: str | None
    cause: str
    outcome: str
    reason: str
    state: StateOfMind
    by: str | None = None
    at: datetime


class Standing(Stance):
    """The same, with where that is, and why it is so."""

    space: str = ""
    told: str | None = None
    """What the agent is told of its state of mind."""
    last: Reflection | None = None


class VoiceStance(Value):
    """How a voice of a panel stands to the people in it, and why it is so."""

    voice: str
    """The id of the advisor, or `assistant`."""
    name: str
    reflects: bool
    """Whether it thinks over the turns that it has answered."""
    space_id: str
    profile: Profile
    state: StateOfMind
    imprints: Mapping[str, str] = {}
    turns: int = 0
    updated_at: datetime | None = None
    told: str | None = None
    """What it is told of its state of mind."""
    last: Reflection | None = None


class StatesOfMind(Value):
    """A state of mind over time, the newest first."""

    runs: tuple[Reflection, ...]
    next: int | None = None


class Signal(Value):
    """What how people feel, or what went wrong, amounted to."""

    number: int
    cycle: int
    person: str | None
    name: str
    rule: str
    score: float | None = None
    at: datetime


class Signals(Value):
    """Signals of a conversation, the newest first."""

    signals: tuple[Signal, ...]
    next: int | None = None


class TriedMetaprompt(Value):
    """What came of a metaprompt that was asked by hand."""

    prompt: str
    failed: str | None
    reason: str
    before: StateOfMind
    after: StateOfMind
    applied: bool


class Preset(Value):
    """A prompt profile that can be chosen."""

    id: str
    label: str = ""
    description: str = ""
    addons: tuple[str, ...] = ()
    text: str = ""


class Profiles(Value):
    """What agents can be given by name."""

    presets: tuple[Preset, ...]
    metaprompts: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()


class ReflectionNames(Value):
    """What `reflection` can name."""

    profiles: tuple[str, ...]
    metaprompts: tuple[str, ...] = ()


class TriedProfile(Value):
    """What the rules say of a message."""

    id: str | None
    reason: str
    text: str = ""
