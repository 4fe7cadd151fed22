"""The phases of an advisor: what it is told to do at each of its turns. Pure.

A phase lasts until one of the advisor's own turns: an advisor that joined late, was switched off or failed has had
fewer than the panel. In its instructions `{turn}` is the number of that turn, and `{of}` the last turn of the phase.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, Field

_PLACE = re.compile(r"\{(turn|of)\}")


class Phase(BaseModel, frozen=True, extra="forbid"):
    """What is asked of an advisor up to one of its turns."""

    name: str = Field(default="", max_length=60)
    """What people see: `question`."""
    until_turn: int | None = Field(default=None, ge=1)
    """Its last turn; None: it does not end."""
    instructions: str = Field(max_length=8_000)
    """What the advisor is told. `{turn}` and `{of}` stand for numbers; everything else is as it is written."""


QUESTIONS: Final = """\
## What to do in this turn (question {turn} of {of})
Ask one question, and nothing else. You do not know enough yet to advise, judge or disagree.
Ask for one concrete thing that you do not know: what was said or done, what limits there are, what has been tried, \
how many, how long, who.
Keep it to one or two sentences, without introduction or comment. Do not hide advice in the question.
Examples, from another conversation:
Good: "What did your teacher say when they recommended The Prosperous Coach?" (It asks for words that were said.)
Good: "How many of these potential clients have you worked with before?" (It asks for a number.)
Bad: "What would it mean to risk an authentic encounter?" (It is advice in the form of a question.)
Bad: "What are you protecting?" (It takes for granted that they protect something.)"""

ENGAGEMENT: Final = """\
## What to do in this turn (turn {turn})
You know enough to answer fully. Answer from your own point of view, with substance, and take a position.
Say where you disagree and why: what is assumed, what does not fit together, what is being avoided. Be honest before \
you are polite.
Be short if the matter is simple; two to four paragraphs are enough for a hard one. Use a story or an example if it \
makes the point clearer. Ask a question back if you need to."""

DEFAULT_PHASES: Final = (
    Phase(name="question", until_turn=3, instructions=QUESTIONS),
    Phase(name="", instructions=ENGAGEMENT),
)
"""Three turns of one question each, then full engagement."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The position of an advisor in its phases."""

    name: str
    turn: int
    of: int | None
    """The last turn of the phase; None if it has no end."""
    instructions: str


def stage_at(phases: Sequence[Phase], turn: int) -> Stage:
    """Returns the stage at an advisor's turn of this number. The last phase never ends."""
    given = phases or DEFAULT_PHASES
    phase = next((each for each in given if each.until_turn is None or turn <= each.until_turn), given[-1])
    numbers = {"turn": str(turn), "of": str(phase.until_turn or turn)}
    # One pass over the owner's text: inserted values are not expanded again.
    text = _PLACE.sub(lambda found: numbers[found[1]], phase.instructions)
    return Stage(phase.name, turn, phase.until_turn, text)
