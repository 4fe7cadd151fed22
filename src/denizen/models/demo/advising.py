"""The demo model as an advisor of a panel: it says what it would be asked, and that it is a demo.

It reads its role and its phase from the prompt. If a tool has fields, it fills them in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from zlib import crc32

from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, UserPromptPart

from denizen.models.scripted import Call, Say, call, say
from denizen.shortening import short_line

TOOLS = frozenset({"vote", "report", "suggest"})
"""The tools that panels offer; never more than one of them."""

_WHO = re.compile(r"^You are ([^\n.]+)\.")
_QUESTION = re.compile(r"question (\d+) of (\d+)")
_TIME = re.compile(r"^\[\d{4}-\d\d-\d\dT\d\d:\d\d\] ")
_SAID = re.compile(r"^([^\n:]{1,120}): (.+)$", re.MULTILINE)
_EXPECTED = re.compile(r"^\d+\. (.+)$", re.MULTILINE)
_WORD = re.compile(r"\w{5,}")

_QUESTIONS = (
    "What has happened so far, in the order in which it happened?",
    "Who else is concerned, and what have they said?",
    "What have you tried already, and what came of it?",
    "By when does it have to be settled, and who says so?",
    "What would it cost, in money and in time?",
    "What made you bring it up now?",
)
_ADVISORS = (
    ("Hannah Arendt", "figure", "You ask what people do together, and who answers for it."),
    ("Socrates", "figure", "You know that you do not know, and ask until a word means something."),
    ("Sherlock Holmes", "character", "You look at what is there before you say what it means."),
    ("Antigone", "character", "You hold to what is right, whatever it costs."),
    ("An accountant", "role", "You want to see the figures, and when the money runs out."),
    ("A night nurse", "role", "You have seen how things end, and say so kindly."),
    ("The one who has tried it", "challenger", "You did exactly this, and it went wrong; you say where."),
    ("The contrarian", "challenger", "You argue for the opposite of what is being hoped, as well as it can be argued."),
)


def is_for_a_panel(tools: Sequence[str]) -> bool:
    """Whether a request with these tools comes from a panel: agents always have others."""
    return not tools or (len(tools) == 1 and tools[0] in TOOLS)


def advise(messages: list[ModelMessage], tools: Sequence[str]) -> Call | Say:
    """Returns the demo model's answer to a panel."""
    system, said = _read(messages)
    asked = next((_TIME.sub("", each) for each in reversed(said) if _TIME.match(each)), said[-1] if said else "")
    name = found[1] if (found := _WHO.match(system)) else ""
    if tools:
        return _fill(tools[0], name, said)
    if "## Agreements" in system:
        return say(_together(said))
    question = _QUESTION.search(system)
    if question is not None:
        return say(_QUESTIONS[(_number(name) + int(question[1])) % len(_QUESTIONS)])
    speaker = f"As {name} I" if name and not name.startswith("a helpful") else "I"
    return say(
        f"{speaker} would look first at this: “{short_line(asked, 80)}”. I am the demo model, and cannot think about "
        "it: set a model with a key, and I will have something to say."
    )


def _fill(tool: str, name: str, said: Sequence[str]) -> Call:
    if tool == "vote":
        number = _number(name)
        position = ("yes", "no", "wait")[number % 3]
        return call("vote", position=position, confidence=(number % 10) / 10, reason="The demo model draws lots.")
    if tool == "report":
        expected = _EXPECTED.findall(said[-1] if said else "")
        return call("report", verdicts=[_verdict(each, said[0]) for each in expected])
    topic = said[-1].partition("\n")[2] if said else ""
    advisors = [
        {"name": each, "kind": kind, "description": about, "reason": f"May see something in “{short_line(topic, 80)}”."}
        for each, kind, about in _ADVISORS
    ]
    return call("suggest", advisors=advisors)


def _verdict(expected: str, answer: str) -> dict[str, Any]:
    words = {each.lower() for each in _WORD.findall(expected)}
    found = sorted(words & {each.lower() for each in _WORD.findall(answer)})
    why = f"It says {', '.join(found)}." if found else "None of these words is in it."
    return {"passed": bool(found), "why": f"{why} The demo model compares words."}


def _together(said: Sequence[str]) -> str:
    heard = [found for each in said if each.startswith("[This is what") for found in _SAID.findall(each[1:-1])]
    lines = "\n".join(
        f"- {name}: {short_line(text, 80)}" for name, text in heard if name != "This is what the voices said"
    )
    return (
        "## Agreements\n\nThe demo model cannot tell.\n\n"
        f"## Disagreements\n\n{lines or '- Nobody has spoken.'}\n\n"
        "## To decide\n\n- Which model shall put this together?"
    )


def _read(messages: list[ModelMessage]) -> tuple[str, list[str]]:
    system = ""
    said: list[str] = []
    for message in messages:
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if isinstance(part, SystemPromptPart):
                system = part.content
            elif isinstance(part, UserPromptPart):
                said.append(part.content if isinstance(part.content, str) else "")
    return system, said


def _number(name: str) -> int:
    return crc32(name.encode())
