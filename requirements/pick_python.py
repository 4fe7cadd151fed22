"""Prints the path of the Python that `make` makes .venv with, and says on stderr why if it is not `python3`.

    python3 requirements/pick_python.py [PYTHON]

That is PYTHON if it is named. Otherwise it is `python3`, unless that is too old or another Python of this machine needs
much less time for the same work: one built with optimizations by its profile, as Linux distributions ship it, often
needs two thirds of the time of one compiled as usual. Runs on Python 3.7, because `python3` may be an old one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
TRIED = ("python3.11", "python3.12", "python3.13", "python3.14")
"""The versions with which Denizen is tested."""
FOLDERS = ("/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
"""Searched besides the path: a version manager puts its own Python before that of the system."""
MUCH_FASTER = 0.8
"""Share of the time that `python3` takes. Less of a difference is not worth a Python that nobody asked for."""
PROBE = f"""
import sys, time
if sys.version_info[:2] < {OLDEST} or sys.implementation.name != "cpython":
    sys.exit("too old")
import ctypes, ensurepip, sqlite3, ssl, venv

class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second

    def total(self):
        return self.first + self.second

def work():
    began, total = time.process_time(), 0
    for number in range(50_000):
        total += Pair(number, 1).total() + len(dict(number=str(number))["number"])
    return time.process_time() - began

print(min(work() for _ in range(5)))
"""


def seconds(python: str) -> float | None:
    """How long it takes for the same work; None if it cannot run Denizen."""
    try:
        tried = subprocess.run([python, "-c", PROBE], capture_output=True, timeout=60, check=True)
        return float(tried.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def candidates() -> list[str]:
    """Each Python once, `python3` first."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *FOLDERS])
    others = [shutil.which(name, path=folder) for folder in path.split(os.pathsep) for name in TRIED]
    unique: dict[str, str] = {}
    for each in (shutil.which("python3"), *others):
        if each is not None:
            unique.setdefault(os.path.realpath(each), each)
    return list(unique.values())


def main() -> None:
    found = sys.argv[1:] or candidates()
    times = {each: taken for each in found for taken in [seconds(each)] if taken is not None}
    if not times:
        sys.exit(
            f"Denizen needs CPython 3.11 or newer, with venv; {' and '.join(found) or 'python3'} cannot run it. "
            "Install one (Debian: python3-venv), or name it: make PYTHON=/path/to/python3"
        )
    usual, fastest = found[0], min(times, key=lambda each: times[each])
    if usual not in times:
        print(f"Using {fastest}: {usual} is older than 3.11, or has no venv.", file=sys.stderr)
    elif times[fastest] < MUCH_FASTER * times[usual]:
        ratio = times[usual] / times[fastest]
        print(f"Using {fastest}: it is {ratio:.1f} times as fast as {usual}.", file=sys.stderr)
        print("`make PYTHON=python3` uses python3.", file=sys.stderr)
    else:
        fastest = usual
    print(fastest)


if __name__ == "__main__":
    main()
