"""A town that has been set up once, and copies of it for every kill."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import servers
from tests.crash.killing import Town
from tests.crash.life import Post

SCENARIO = (
    (Post(1, "desk", "noor", "ada", "plain"), Post(2, "square", "finn", "bo", "note")),
    (
        Post(3, "square", "noor", "ada", "both"),
        Post(4, "square", "noor", "cleo", "mark"),
        Post(5, "den", "finn", "bo", "silent"),
    ),
    (Post(6, "desk", "noor", "ada", "balk"), Post(7, "den", "finn", "bo", "falter")),
    (Post(8, "desk", "noor", "ada", "stammer"), Post(9, "square", "noor", "ada", "plain")),
    (Post(10, "desk", "noor", "ada", "linger"),),
)
"""Every way a cycle can go by itself: tools of both kinds, skips, reminders, failures, broken streams, a stop in the
middle."""

OUTSIDE = (
    (
        Post(1, "desk", "noor", "ada", "confirm"),
        Post(2, "den", "finn", "bo", "later"),
        Post(3, "square", "noor", "cleo", "timer"),
    ),
    (Post(4, "desk", "noor", "ada", "send"), Post(5, "den", "finn", "bo", "fetch")),
)
"""What a cycle has to do with others: questions to people, calls that nobody waits for, timers, requests over HTTP."""


REMEMBERING = tuple((Post(number, "desk", "noor", "ada", "plain"),) for number in range(1, 4))
"""A conversation of six messages, summed up in three passes while it goes on."""


@dataclass(frozen=True, slots=True)
class Founded:
    """A town in which nothing was asked yet."""

    town: Town
    filled: servers.Filled | None
    """A PostgreSQL database for the copies, one after the other: making one takes longer than a life."""

    @contextmanager
    def copy(self, folder: Path) -> Iterator[Town]:
        """The same town once more, with a database of its own."""
        folder.mkdir(parents=True)
        if self.filled is None:
            shutil.copy(self.town.folder / "denizen.db", folder / "denizen.db")
            yield Town(f"sqlite:///{folder / 'denizen.db'}", folder, self.town.began, flushes=False)
            return
        self.filled.fill()
        yield Town(self.filled.url, folder, self.town.began)
