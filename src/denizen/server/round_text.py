"""A round of a panel as one text that only grows, for clients to whom nothing can be taken back once it was sent. Pure.

Each voice has its part under its name, in the panel's order. The first that is not done is passed on while it is
written; what those after it write is kept until it is their turn, and then passed on as far as it has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from denizen.panel.rounds import ASSISTANT, Reply
from denizen.panel.transcript import said
from denizen.server.telling import Telling


@dataclass(slots=True)
class _Written:
    """What a voice has written in its last attempt."""

    epoch: int
    text: str = ""
    passed_on: int = 0

    def next(self) -> str:
        """What of it is to be passed on. What is said in the end neither begins nor ends with blanks."""
        ready = self.text.strip()
        new, self.passed_on = ready[self.passed_on :], len(ready)
        return new


class RoundText:
    """What one client has been sent of a round. Each method gives what is to be sent next."""

    def __init__(self) -> None:
        self._telling = Telling()
        self._spoken: Sequence[Reply] = ()
        self._told = 0
        """So many voices, from the first on, were told to their ends."""
        self._written: dict[str, _Written] = {}

    def see(self, spoken: Sequence[Reply]) -> str:
        """This is how the voices of the round stand."""
        self._spoken = spoken
        told = ""
        while self._told < len(spoken) and spoken[self._told].is_over:
            told += self._whole(spoken[self._told])
            self._told += 1
        return told + self._go_on()

    def hear(self, voice: str, epoch: int, text: str) -> str:
        """A voice has written more, in this attempt."""
        written, told = self._written.get(voice), ""
        if written is None or written.epoch < epoch:
            written = self._written[voice] = _Written(epoch)
            told = self._telling.break_off(voice)
        written.text += text
        return told + self._go_on()

    def end(self, note: str = "") -> str:
        """Nobody waits any longer: who is done is told, whose turn it ever was."""
        done = [each for each in self._spoken[self._told :] if each.is_over]
        return "".join(map(self._whole, done)) + self._telling.end(note)

    def _go_on(self) -> str:
        """What there is of the one whose turn it is."""
        if self._told >= len(self._spoken):
            return ""
        reply = self._spoken[self._told]
        written = self._written.get(reply.voice)
        return self._name(reply) + ("" if written is None else self._telling.write(reply.voice, written.next()))

    def _whole(self, reply: Reply) -> str:
        if reply.state == "done":
            return self._name(reply) + self._telling.say(reply.voice, said(reply))
        broken = self._telling.break_off(reply.voice)
        # Why, and what to do about it, is told once, at the end of the round.
        how = "_(could not answer)_" if reply.state == "failed" else said(reply)
        return broken + self._name(reply) + self._telling.say(f"state of {reply.voice}", how)

    def _name(self, reply: Reply) -> str:
        """Once, before what it says; the plain assistant has none."""
        return "" if reply.voice == ASSISTANT else self._telling.say(f"name of {reply.voice}", f"## {reply.name}")


def text_of(spoken: Sequence[Reply], note: str = "") -> str:
    """The whole of what is there, as one text, and a note at its end."""
    text = RoundText()
    return text.see([each for each in spoken if each.is_over]) + text.end(note)
