"""An agent's answer as one growing text, for clients that cannot take back what they were sent. Pure.

Text is passed on as the agent writes it. If the agent breaks off and begins again with the same words, the client
notices nothing: what it has is not sent again. If it begins differently, or not at all, the client is told that the
text it has was not posted. So a client never takes for posted what was not, and never gets the same text twice.
"""

from __future__ import annotations

from typing import Final

from denizen.shortening import short_line

BETWEEN: Final = "\n\n"
"""What stands between two messages of one answer."""
_QUOTED: Final = 60


def taken_back(text: str) -> str:
    """The note that the client gets instead of taking the text back."""
    return f"[Taken back, not said: “{short_line(text, _QUOTED)}”]"


class GrowingText:
    """What one client has been sent of an answer. Each method returns what to send next."""

    def __init__(self) -> None:
        self._written: dict[str, str] = {}
        """The text known so far, by id."""
        self._sent: dict[str, int] = {}
        """How much of each was sent, if any."""
        self._broken_off: str | None = None
        """The last text that was sent, if it was not posted: the next one may begin like it."""
        self._last: str | None = None
        """The id of the text that was sent last."""
        self._said: set[str] = set()
        self._begun = False

    def write(self, id: str, text: str) -> str:
        """Takes more of this text."""
        if id in self._said:
            return ""
        written = self._written[id] = self._written.get(id, "") + text
        return self._send(id, written)

    def begin(self, id: str) -> None:
        """Starts this text, or restarts it: what was written before no longer counts."""
        if id not in self._said and id not in self._sent:
            self._written[id] = ""

    def break_off(self, id: str) -> str:
        """Notes that this text will not be posted."""
        if id in self._said:
            return ""
        written, sent = self._written.pop(id, ""), self._sent.pop(id, None)
        if sent is None:
            return ""  # Nothing of it was sent, or only what had been sent of another.
        if self._last == id and self._broken_off is None:
            self._broken_off = written[:sent]
            return ""
        return self._next(taken_back(written[:sent]))

    def say(self, id: str, text: str) -> str:
        """Takes the text of the posted message."""
        if id in self._said:
            return ""
        written = self._written.get(id, "")[: self._sent.get(id, 0)]
        if not text.startswith(written):
            told = self.break_off(id)
            return told + self.say(id, text)
        self._written[id] = text
        told = self._send(id, text, whole=True)
        self._said.add(id)
        return told

    def end(self, note: str = "") -> str:
        """Ends the answer; a note says why, if there is a reason."""
        told = self._give_up()
        return told + (self._next(note) if note else "")

    def _send(self, id: str, written: str, *, whole: bool = False) -> str:
        sent = self._sent.get(id)
        if sent is not None:
            self._sent[id], self._last = len(written), id
            return written[sent:]
        if not written:
            return ""
        if self._broken_off is not None:
            if not whole and len(written) < len(self._broken_off) and self._broken_off.startswith(written):
                return ""  # As before, so far.
            if written.startswith(self._broken_off):
                rest, self._broken_off = written[len(self._broken_off) :], None
                self._sent[id], self._last = len(written), id
                return rest
        told = self._give_up()
        self._sent[id], self._last = len(written), id
        return told + self._next(written)

    def _give_up(self) -> str:
        """Gives up the text that was broken off: it is not continued."""
        if self._broken_off is None:
            return ""
        text, self._broken_off = self._broken_off, None
        return self._next(taken_back(text))

    def _next(self, text: str) -> str:
        between = BETWEEN if self._begun else ""
        self._begun = True
        return between + text
