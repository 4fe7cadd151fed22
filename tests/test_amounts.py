"""Numbers of bytes, as people read them."""

from __future__ import annotations

import pytest

from denizen.amounts import human_size
from denizen.errors import FileTooLarge


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1_000, "1 kB"),
        (2_140, "2.1 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1 MB"),
        (60_000_000, "60 MB"),
        (85_400_000_000, "85.4 GB"),
        (3 * 10**12, "3 TB"),
        (-2_140, "-2.1 kB"),
    ],
)
def test_a_size_is_told_in_the_unit_that_fits(size: int, told: str) -> None:
    assert human_size(size) == told


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (60_000_000, "big.bin is too large (60 MB). Choose a file of at most 25 MB."),
        (25_000_001, "big.bin is too large (25,000,001 bytes). Choose a file of at most 25,000,000 bytes."),
    ],
)
def test_a_file_that_is_too_large_never_looks_as_large_as_the_limit(size: int, told: str) -> None:
    error = FileTooLarge("big.bin", size, 25_000_000)
    assert str(error) == told
    assert (error.size, error.limit) == (size, 25_000_000)
