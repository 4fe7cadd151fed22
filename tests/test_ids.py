"""Identifiers, and the random bytes in them."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from denizen.ids import new_id, random_bytes

FORKED = """
import os
from denizen.ids import random_bytes

random_bytes()  # there are more of the same fetch
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, b"".join(random_bytes() for _ in range(100)))
    os._exit(0)
os.wait()
mine = {random_bytes() for _ in range(100)}
theirs = os.read(reading, 1600)
print(len(theirs), len(mine), len(mine & {theirs[at : at + 16] for at in range(0, 1600, 16)}))
"""


def test_identifiers_are_of_version_seven():
    made = [new_id() for _ in range(1_000)]
    assert len(set(made)) == 1_000
    assert {(each[14], each[19] in "89ab", len(each)) for each in made} == {("7", True, 36)}


def test_no_two_callers_get_the_same_random_bytes():
    with ThreadPoolExecutor(8) as threads:
        got = [
            each for some in threads.map(lambda _: [random_bytes() for _ in range(2_000)], range(8)) for each in some
        ]
    assert len(set(got)) == len(got) == 16_000
    assert {len(each) for each in got} == {16}


def test_a_process_that_was_forked_has_random_bytes_of_its_own():
    printed = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True)
    assert printed.stdout.split() == ["1600", "100", "0"]
