"""Parses a typed line: a message, or a command that begins with a slash. Pure."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Final, TypeAlias

COMMANDS: Final = {
    "/join": "NAME  go to another space (also /s NAME); @ada is your own with Ada",
    "/spaces": "your spaces, and what is new in them",
    "/who": "who is here",
    "/agents": "all agents, and how they are",
    "/more": "what was said before",
    "/attach": "PATH  send a file with your next message; without a path, what goes with it",
    "/files": "the files of the last messages",
    "/save": "NAME PATH  save a file; without a path, in the current folder",
    "/react": "EMOJI WORDS  react to the last message with these words, or of somebody else; again: remove it",
    "/pin": "WORDS  pin the last message with these words, for everyone here; again: unpin it",
    "/pins": "the pinned messages",
    "/answer": "TEXT  answer what an agent asks; without a text, what waits",
    "/yes": "answer yes; where several wait: /yes 2, /answer 2 TEXT",
    "/no": "answer no",
    "/retry": "AGENT  have an agent that cannot answer try again; without a name, all of them",
    "/ask": "AGENT  ask an agent that did not reply for an answer",
    "/stop": "AGENT  stop what an agent is writing (also Ctrl-C); without a name, all of them",
    "/help": "this list",
    "/quit": "leave (also Ctrl-D)",
}
"""Every command and what it does, as `/help` shows it."""

_OTHER_NAMES: Final = {"/s": "/join", "/j": "/join", "/q": "/quit", "/exit": "/quit", "/?": "/help", "/h": "/help"}


@dataclass(frozen=True, slots=True)
class Say:
    """A message to post."""

    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """One of `COMMANDS`, and its arguments."""

    name: str
    argument: str


@dataclass(frozen=True, slots=True)
class Mistyped:
    """It looks like a command but is not one."""

    sentence: str


Typed: TypeAlias = Say | Command | Mistyped


def read_line(text: str) -> Typed | None:
    """Parses a line; None for an empty one. A line with a doubled slash, or a slash that is not first, is a message."""
    stripped = text.strip()
    if not stripped:
        return None
    if not stripped.startswith("/"):
        return Say(text.strip("\n"))
    if stripped.startswith("//"):
        return Say(stripped[1:])
    word, _, argument = stripped.partition(" ")
    name = _OTHER_NAMES.get(word.lower(), word.lower())
    if name in COMMANDS:
        return Command(name, argument.strip())
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    advice = f"Did you mean {near[0]}?" if near else "/help lists the commands."
    return Mistyped(f"There is no command {word}. {advice} To say it anyway, write //{word[1:]}.")
