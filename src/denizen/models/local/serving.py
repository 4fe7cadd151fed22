"""The program that serves the local model: `python serving.py WEIGHTS WANTED`, with the key on stdin.

It prints its address once it answers, and ends when nobody holds a lock on the file WANTED any longer. A process of its
own keeps the computation off the event loop's process, and several runtimes can share it.
"""

from __future__ import annotations

import fcntl
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

CONTEXT_TOKENS: Final = 4_096


def main(weights: str, wanted: str) -> None:
    """Serves until nobody holds the lock any longer."""
    server = _serve(weights, sys.stdin.readline().strip())
    with Path(wanted).open() as file:
        sys.stdout.write(f"{server.listening_address}\n")
        sys.stdout.flush()
        # Granted once the last user is gone, however it ended, and held until we end.
        fcntl.flock(file, fcntl.LOCK_EX)
        os._exit(0)


def _serve(weights: str, key: str) -> Any:
    llama: Any = import_module("xllamacpp")
    parameters = llama.CommonParams()
    parameters.model.path = weights
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [key]
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = 1
    # Two threads are slower than one, and take the core that others need.
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.n_threads_http = 2
    parameters.ui = False
    parameters.endpoint_slots = False
    return llama.Server(parameters)


if __name__ == "__main__":
    main(*sys.argv[1:])
