"""A program that holds the lock of an instance until it is killed, for tests that need another process.

python -m tests.agents.lock_holder FOLDER INSTANCE

It starts a program of its own, as tools do, which outlives it and ends with its input.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from denizen.agents.instance_lock import InstanceLock


def main(folder: str, instance: str) -> None:
    InstanceLock(Path(folder), instance).hold()
    with subprocess.Popen(["/bin/cat"], stdout=subprocess.DEVNULL) as outliving:
        print("held", flush=True)  # noqa: T201
        outliving.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
