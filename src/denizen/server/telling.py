"""An answer as one text that only grows, for clients to whom nothing can be taken back once it was sent. Pure.

What an agent writes is passed on while it writes. If it breaks off and begins anew with the same words, the client
notices nothing: what it has already is not sent again. If it begins otherwise, or not at all, the client is told that
what it has was not said. So a client never holds as said what was not, and never holds twice what was said once.
"""

from __future__ import annotations

from typing import Final

BETWEEN: Final = "\n\n"
"""What stands between two messages of one answer."""
_QUOTED: Final = 60


def taken_back(text: str) -> str:
    """What the client is told in place of taking the text back."""
    words = " ".join(text.split())
    shown = words if len(words) <= _QUOTED else words[: _QUOTED - 1].rstrip() + "…"
    return f"[Taken back, not said: “{shown}”]"


class Telling:
    """What one client has been sent of an answer. Each method gives what is to be sent next."""

    def __init__(self) -> None:
        self._written: dict[str, str] = {}
        """What is known of each text, by its id."""
        self._sent: dict[str, int] = {}
        """How much of it was sent, where any was."""
        self._broken_off: str | None = None
        """The last thing that was sent, if it was not said: the next text may begin like it."""
        self._last: str | None = None
        """The text to which the last thing belonged that was sent."""
        self._said: set[str] = set()
        self._begun = False

    def write(self, id: str, text: str) -> str:
        """The agent has written more of this text."""
        if id in self._said:
            return ""
        written = self._written[id] = self._written.get(id, "") + text
        return self._send(id, written)

    def begin(self, id: str) -> None:
        """The agent begins to write this text; or begins it anew, and what was written before counts no more."""
        if id not in self._said and id not in self._sent:
            self._written[id] = ""

    def break_off(self, id: str) -> str:
        """This text will not be said."""
        if id in self._said:
            return ""
        written, sent = self._written.pop(id, ""), self._sent.pop(id, None)
        if sent is None:
            return ""  # nothing of it was sent, or only what had been sent of another
        if self._last == id and self._broken_off is None:
            self._broken_off = written[:sent]
            return ""
        return self._next(taken_back(written[:sent]))

    def say(self, id: str, text: str) -> str:
        """The message was said; this is its text."""
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
        """Nothing more is said; a note says why, where there is something to say."""
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
                return ""  # as before, so far
            if written.startswith(self._broken_off):
                rest, self._broken_off = written[len(self._broken_off) :], None
                self._sent[id], self._last = len(written), id
                return rest
        told = self._give_up()
        self._sent[id], self._last = len(written), id
        return told + self._next(written)

    def _give_up(self) -> str:
        """What broke off is not taken up again."""
        if self._broken_off is None:
            return ""
        text, self._broken_off = self._broken_off, None
        return self._next(taken_back(text))

    def _next(self, text: str) -> str:
        between = BETWEEN if self._begun else ""
        self._begun = True
        return between + text
