"""Runs the benches, all or those named, one after the other, and prints the line of JSON with which each ends.

    python -m bench [NAME...]

Modules whose name begins with `_` are parts of benches, not benches. `real`, which takes an hour and downloads a
model (`make real`), and `peers`, which installs other frameworks, are run only if named. A bench that fails, or
does not end with a JSON object, is reported on stderr; the others still run, and the exit status is 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
ONLY_BY_NAME = {"peers", "real"}


def main(names: list[str]) -> int:
    """The exit status: 0 if every bench ran and reported."""
    failures = [name for name in names or every_bench() if not ran(name)]
    if failures:
        print(f"Failed: {', '.join(failures)}", file=sys.stderr)
    return 1 if failures else 0


def every_bench() -> list[str]:
    """The benches there are, by name, except those that are run only by name."""
    names = {path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_")}
    return sorted(names - ONLY_BY_NAME)


def ran(name: str) -> bool:
    """Run one bench with its default arguments and print its result; False if it has none."""
    bench = subprocess.run(
        [sys.executable, "-m", f"bench.{name}"], stdout=subprocess.PIPE, text=True, cwd=FOLDER.parent
    )
    result = last_line(bench.stdout)
    if bench.returncode == 0 and is_json_object(result):
        print(result, flush=True)
        return True
    print(f"{name} ended with status {bench.returncode} and these last words: {result!r}", file=sys.stderr)
    return False


def last_line(text: str) -> str:
    """The last line that is not empty, or an empty one."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def is_json_object(text: str) -> bool:
    """Whether the text is a JSON object, and nothing else."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
