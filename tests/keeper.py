"""Runs a server for as long as somebody wants it. A program of its own, so that it outlives whoever started it.

    python keeper.py LOCK FOLDER STOP_SIGNAL USER COMMAND...

Whoever wants the server holds a shared lock on the file LOCK. The kernel lets go of it however its holder ends, even by
SIGKILL. Once nobody holds it, the keeper stops the server, removes FOLDER and ends. SIGTERM stops the server and leaves
FOLDER as it is, so that another keeper can start it again. USER is a numeric user id, or `-` for our own.
"""

from __future__ import annotations

import fcntl
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

SECONDS_TO_STOP = 20


def main(lock: Path, folder: Path, stop_signal: int, user: str, *command: str) -> None:
    """Run `command` until it ends, until we are told to stop it, or until nobody holds `lock`."""
    account = None if user == "-" else int(user)
    groups = None if account is None else ()
    server = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, cwd=folder, user=account, group=account, extra_groups=groups
    )
    signal.signal(signal.SIGTERM, lambda *_: stop(server, stop_signal))
    unwanted = threading.Event()

    def wait_until_unwanted() -> None:
        # Held until this process is gone: who asks for the server meanwhile waits, and then finds the folder removed.
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        unwanted.set()
        stop(server, stop_signal)

    with lock.open() as lock_file:
        threading.Thread(target=wait_until_unwanted, daemon=True).start()
        server.wait()
        if unwanted.is_set():
            shutil.rmtree(folder, ignore_errors=True)


def stop(server: subprocess.Popen[bytes], stop_signal: int) -> None:
    """Ask the server to stop; make it, if it does not in time."""
    server.send_signal(stop_signal)
    killer = threading.Timer(SECONDS_TO_STOP, server.kill)
    killer.daemon = True
    killer.start()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
