"""The program that serves a GGUF file with OpenAI's API: `python _real_server.py WEIGHTS CONTEXT_TOKENS THREADS`.

Run by the Python of an environment that has `xllamacpp`. It prints its address once it answers, and ends when its
standard input is closed: with whoever started it, however that ended.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

NAME = "qwen2.5-coder-1.5b"


def main(weights: str, context_tokens: str, threads: str) -> None:
    llama: Any = import_module("xllamacpp")
    parameters = llama.CommonParams()
    parameters.model.path = weights
    parameters.model_alias = {NAME}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = int(context_tokens)
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = int(threads)
    parameters.cpuparams_batch.n_threads = int(threads)
    parameters.ui = False
    server = llama.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
