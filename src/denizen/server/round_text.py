"""A round of a panel as one growing text, for clients that cannot take back what they were sent. Pure.

Each advisor has a part under its name, in the panel's order. The first unfinished one is passed on as it is written;
the text of those after it is held until it is their turn, and then passed on as far as it has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from denizen.panel.rounds import ASSISTANT, Reply
from denizen.panel.transcript import said
from denizen.server.growing_text import GrowingText


@dataclass(slots=True)
class _AdvisorText:
    """The text of an advisor in its last attempt."""

    epoch: int
    text: str = ""
    passed_on: int = 0

    def next(self) -> str:
        """Returns the part to pass on next. The final text neither begins nor ends with blanks."""
        ready = self.text.strip()
        new, self.passed_on = ready[self.passed_on :], len(ready)
        return new


class RoundText:
    """What one client has been sent of a round. Each method returns what to send next."""

    def __init__(self) -> None:
        self._telling = GrowingText()
        self._spoken: Sequence[Reply] = ()
        self._told = 0
        """How many advisors, from the first on, were sent completely."""
        self._written: dict[str, _AdvisorText] = {}

    def see(self, spoken: Sequence[Reply]) -> str:
        """Takes the present states of the round's replies."""
        self._spoken = spoken
        told = ""
        while self._told < len(spoken) and spoken[self._told].is_over:
            told += self._whole(spoken[self._told])
            self._told += 1
        return told + self._go_on()

    def hear(self, voice: str, epoch: int, text: str) -> str:
        """Takes more text of an advisor, in this attempt."""
        written, told = self._written.get(voice), ""
        if written is None or written.epoch < epoch:
            written = self._written[voice] = _AdvisorText(epoch)
            told = self._telling.break_off(voice)
        written.text += text
        return told + self._go_on()

    def end(self, note: str = "") -> str:
        """Ends the text when nobody waits any longer: sends the finished replies."""
        done = [each for each in self._spoken[self._told :] if each.is_over]
        return "".join(map(self._whole, done)) + self._telling.end(note)

    def _go_on(self) -> str:
        """Sends what there is of the advisor whose turn it is."""
        if self._told >= len(self._spoken):
            return ""
        reply = self._spoken[self._told]
        written = self._written.get(reply.voice)
        return self._name(reply) + ("" if written is None else self._telling.write(reply.voice, written.next()))

    def _whole(self, reply: Reply) -> str:
        if reply.state == "done":
            return self._name(reply) + self._telling.say(reply.voice, said(reply))
        broken = self._telling.break_off(reply.voice)
        # The reason, and what to do about it, is sent once, at the end of the round.
        how = "_(could not answer)_" if reply.state == "failed" else said(reply)
        return broken + self._name(reply) + self._telling.say(f"state of {reply.voice}", how)

    def _name(self, reply: Reply) -> str:
        """The name, once before the reply; the plain assistant has none."""
        return "" if reply.voice == ASSISTANT else self._telling.say(f"name of {reply.voice}", f"## {reply.name}")


def text_of(spoken: Sequence[Reply], note: str = "") -> str:
    """Returns the whole text so far, with a note at its end."""
    text = RoundText()
    return text.see([each for each in spoken if each.is_over]) + text.end(note)
