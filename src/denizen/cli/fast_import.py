"""Imports large modules faster."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def importing(module: str) -> Generator[None]:
    """Imports this module, and what it needs, without garbage collection: nothing of it becomes garbage, and
    looking for some would take a quarter of the time.
    """
    if module in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
