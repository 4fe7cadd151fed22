"""One life in a town of its own, lived when this is imported, so that whoever is forked afterwards has lived before.

What a process does for the first time takes long: it compiles its SQL, describes its tools, imports what it needs late.
The lives that are to be killed need not do it, each of them, all over again.
"""

from __future__ import annotations

import gc
import tempfile
import time
from pathlib import Path

import structlog

from denizen.api.wiring import Wiring
from denizen.storage.database import Statement
from tests.crash.life import Life, Post, live

_KINDS = ("plain", "note", "mark", "both", "silent", "confirm", "later", "timer")


def _rehearse() -> None:
    asked = tuple(Post(number, "desk", "noor", "ada", kind) for number, kind in enumerate(_KINDS, 1))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        live(Life(1, f"sqlite:///{folder / 'denizen.db'}", folder, time.time_ns(), "127.0.0.1:9", (asked,)))
    structlog.reset_defaults()
    for each in gc.get_objects():
        if isinstance(each, Statement) and "sqlite" in vars(each):
            # Compiled for the other database as well.
            _ = each.postgresql
    gc.freeze()  # what is shared by all who are forked stays shared


Wiring.finds_models = False  # as in tests/conftest.py: nor is it asked for at the beginning of each life
_rehearse()
