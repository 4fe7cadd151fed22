"""Importing much at once."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def importing(module: str) -> Generator[None]:
    """Inside, this module is imported, and whatever it needs. Nothing of that becomes garbage, and looking for some
    would take a quarter of the time."""
    if module in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
