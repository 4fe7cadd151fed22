"""Numbers of bytes as people read them."""

from __future__ import annotations


def human_size(size: int) -> str:
    """Returns a number of bytes for people, in the unit that fits: `812 bytes`, `2.1 kB`, `60 MB`."""
    if abs(size) < 1_000:
        return f"{size} byte" if size == 1 else f"{size} bytes"
    value = float(size)
    for unit in ("kB", "MB", "GB"):
        value /= 1_000
        if abs(round(value, 1)) < 1_000:
            return _told(value, unit)
    return _told(value / 1_000, "TB")


def _told(value: float, unit: str) -> str:
    return f"{value:.1f}".removesuffix(".0") + f" {unit}"
