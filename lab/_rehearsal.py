"""One `denizen up` from its start to its end, run when this is imported by the process that forks the others.

What a process does for the first time takes long: to import, to describe its routes, to compile its SQL. Whoever is
forked afterwards has done it. They start in 0.04 s of CPU time instead of 0.7; everything else about them is real.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Final

import psycopg  # noqa: F401  what the others would import when they first connect
import psycopg_binary  # noqa: F401  after the other, which it refuses to be without
import structlog

import denizen.storage.postgresql
import denizen.storage.sqlite  # noqa: F401
from denizen import failpoints
from denizen.cli.main import main
from denizen.storage.database import Statement
from lab import __main__ as _laboratory  # noqa: F401  each process that is forked imports it once more
from lab.setting import Place, settle

PORT: Final = int(os.environ["LAB_REHEARSAL_PORT"])
POINTS: list[str] = []
"""The points around commits, model calls and tool calls that the rehearsal passed, once each."""


def _rehearse() -> None:
    kept, arguments = dict(os.environ), sys.argv
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as nowhere:
        home = f"{folder}/home"
        model = f"http://127.0.0.1:{os.environ['LAB_MODEL_PORT']}"
        os.environ.clear()
        os.environ.update(
            PATH=kept.get("PATH", ""),
            HOME=folder,
            DENIZEN_HOME=home,
            DENIZEN_PORT=str(PORT),
            DENIZEN_LOG_FORMAT="json",
            OPENAI_API_KEY="none",
            OPENAI_BASE_URL=f"{model}/v1",
        )
        sys.argv = ["denizen", "up"]
        visitor = threading.Thread(target=_visit, args=(home, model))
        streams = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = nowhere
        try:
            visitor.start()
            with failpoints.recording() as passed, suppress(SystemExit):
                main()
            visitor.join()
        finally:
            sys.stdout, sys.stderr = streams
            sys.argv = arguments
            os.environ.clear()
            os.environ.update(kept)
    POINTS.extend(sorted({each for each in passed if not each.startswith(("commit:migrate", "committed:migrate"))}))
    structlog.reset_defaults()
    for each in gc.get_objects():
        if isinstance(each, Statement):
            _ = each.sqlite, each.postgresql
    gc.freeze()


def _visit(home: str, model: str) -> None:
    try:
        place = Place(f"http://127.0.0.1:{PORT}", home)
        place.until_up()
        settled = settle(place, model)
        for number, kind in enumerate(("plain", "note", "mark", "both", "mcp", "timer"), 1):
            place.ask_and_wait(settled, number, kind)
        place.look_around(settled, 7)
        request = urllib.request.Request(place.url + "/api/stream", headers=place.headers)
        with urllib.request.urlopen(request, timeout=60) as stream:
            stream.readline()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


if "FAKETIME_TIMESTAMP_FILE" in os.environ:
    time.sleep = _sleep  # what Python does by itself, libfaketime refuses with EINVAL
_rehearse()
