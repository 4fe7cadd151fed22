"""`denizen` in processes of their own that need not import anything: each is forked from one that has run once.

To start takes longer than most tests do. What `denizen()` gives stands for `python -m denizen`, `program(path)` for
`python path`: it hands its standard streams, folder, environment and arguments over to the process that forks, passes
signals on, and ends as the other one; killed, it takes the other with it. What a real start is like is tested by
tests/cli/test_main.py, tests/cli/test_up.py and tests/surfaces.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from typing import Any

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
TELL_IMPORTS = "WARM_TELL_IMPORTS"
"""Names a file, to which a process writes at its end what it had to import itself."""
CONSTANTS = "WARM_CONSTANTS"
"""JSON: constants of modules, by their full names, that have other values in a process. Nobody waits for time-outs that
are shipped."""

PROGRAM = "--program"
PRELOADED = (
    "denizen.cli.apply",
    "denizen.models.openai",
    "denizen.storage.postgresql",
    "denizen.bus.redis",
    "mcp.server.mcpserver",  # for the MCP servers of the tests
)

# What only some need is imported where it is needed: `run` has to start fast.


_started: list[str] = []
"""The address of the process that forks for this one."""


def denizen() -> list[str]:
    """The beginning of a command line, as `python -m denizen` is. The process that forks ends with this one."""
    if not _started:
        _started.append(_start())
    return [sys.executable, "-I", "-S", __file__, *_started]


def program(path: str) -> list[str]:
    """The same for a program of the tests, as `python path` is. What MCP servers import need not be imported."""
    return [*denizen(), PROGRAM, path]


def _start() -> str:
    import atexit
    import shutil
    import subprocess
    import tempfile

    folder = tempfile.mkdtemp(prefix="denizen-warm-")
    address = os.path.join(folder, "line")  # noqa: PTH118
    server = subprocess.Popen(
        [sys.executable, "-P", __file__, "--serve", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": os.environ["PATH"]},
        start_new_session=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    if server.stdout.readline() != b"ready\n":
        raise RuntimeError("The process that forks did not start.")

    def end() -> None:
        server.communicate()
        shutil.rmtree(folder)

    atexit.register(end)
    return address


def run(address: str, arguments: list[str]) -> None:
    """Be the command, as it is seen from outside."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    for each in PASSED_ON:
        signal.signal(each, lambda number, _frame: line.send(bytes([number])))
    socket.send_fds(line, [b"."], [0, 1, 2])
    told = {"arguments": arguments, "folder": os.getcwd(), "environ": dict(os.environ)}  # noqa: PTH109
    line.sendall(json.dumps(told).encode() + b"\n")
    status = int(line.recv(100) or b"1")
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def serve(address: str) -> None:
    """Run once, then fork for whoever asks, until standard input ends."""
    import gc
    import select
    from importlib import import_module

    gc.disable()
    for module in PRELOADED:
        import_module(module)
    rehearse()
    gc.freeze()
    gc.enable()
    woken, waking = os.pipe()
    for end in (woken, waking):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            heard = select.select([0, woken, door, *children.values()], [], [])[0]
            if 0 in heard:
                break
            for child, line in list(children.items()):
                if line in heard:
                    _pass_on(child, line)
            if woken in heard:
                os.read(woken, 1_000)
                _bury(children)
            if door in heard:
                line = door.accept()[0]
                _, streams, _, _ = socket.recv_fds(line, 1, 3)
                with line.makefile() as words:
                    told = json.loads(words.readline())
                child = os.fork()
                if child == 0:
                    for other in (door, line, *children.values()):
                        other.close()
                    _live(streams, told)
                children[child] = line
                for stream in streams:
                    os.close(stream)
    for child in children:
        os.kill(child, signal.SIGKILL)


def rehearse() -> None:
    """Ask an agent and run `denizen up` once, from start to end, in this process.

    What a process does for the first time takes long: to import what is needed late, to describe its routes, to compile
    its SQL. Each that is forked afterwards starts in a seventh of the time.
    """
    import tempfile
    import threading

    with tempfile.TemporaryDirectory() as folder:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        environ = {
            "HOME": folder,
            "DENIZEN_HOME": os.path.join(folder, "home"),  # noqa: PTH118
            "DENIZEN_PORT": str(port),
            "DENIZEN_MODEL": "demo",
        }
        _run_here(["chat", "lobby", "--once", "Hello, @ada."], environ)
        visitor = threading.Thread(target=_visit, args=(port,))
        visitor.start()
        try:
            _run_here(["up"], environ)
        finally:
            visitor.join()


def _run_here(arguments: list[str], environ: dict[str, str]) -> None:
    """Run the command in this process, which is afterwards as before."""
    import logging
    from pathlib import Path

    import structlog

    from denizen.cli.main import main
    from denizen.telemetry.logs import CHATTY

    names = ("argv", "stdin", "stdout", "stderr")
    before, environ_before = [getattr(sys, name) for name in names], dict(os.environ)
    root = logging.getLogger()
    handlers, levels = list(root.handlers), {name: logging.getLogger(name).level for name in ("root", *CHATTY)}
    with Path(os.devnull).open("r+") as nowhere:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = ["denizen", *arguments], nowhere, nowhere, nowhere
        os.environ.update(environ)
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"The rehearsal of {arguments} ended with {end.code}.") from end
        finally:
            for name, value in zip(names, before, strict=True):
                setattr(sys, name, value)
            os.environ.clear()
            os.environ.update(environ_before)
            structlog.reset_defaults()
            root.handlers[:] = handlers
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)


def _visit(port: int) -> None:
    """Wait until the server is ready, then stop it."""
    import time
    import urllib.error
    import urllib.request

    try:
        for _ in range(3_000):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=100):
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.02)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def _pass_on(child: int, line: socket.socket) -> None:
    try:
        numbers = line.recv(100)
    except ConnectionError:
        numbers = b""
    for number in numbers or [signal.SIGKILL]:
        os.kill(child, number)  # it is there until it was buried


def _bury(children: dict[int, socket.socket]) -> None:
    while children:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        with children.pop(child) as line:
            try:
                line.sendall(str(os.waitstatus_to_exitcode(status)).encode())
            except ConnectionError:
                pass  # it was killed because nobody waits for it any more


def _live(streams: list[int], told: dict[str, Any]) -> None:
    """Be a `denizen` that has just started, to the end."""
    import atexit
    import io
    import time
    import traceback

    status, imported = 1, set(sys.modules)
    try:
        signal.set_wakeup_fd(-1)
        for each in (signal.SIGCHLD, *PASSED_ON):
            signal.signal(each, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
        raw_out, raw_err = (io.BufferedWriter(io.FileIO(number, "wb", closefd=False)) for number in (1, 2))
        sys.stdout = io.TextIOWrapper(raw_out, encoding="utf-8", line_buffering=os.isatty(1))
        sys.stderr = io.TextIOWrapper(raw_err, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        os.chdir(told["folder"])
        os.environ.clear()
        os.environ.update(told["environ"])
        time.tzset()
        for name, value in json.loads(os.environ.pop(CONSTANTS, "{}")).items():
            module, _, constant = name.rpartition(".")
            getattr(sys.modules[module], constant)  # there is one
            setattr(sys.modules[module], constant, value)
        if told["arguments"][:1] == [PROGRAM]:
            import runpy

            sys.argv = told["arguments"][1:]
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            from denizen.cli.main import main

            sys.argv = ["denizen", *told["arguments"]]
            main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  as the interpreter does
        traceback.print_exc()
    finally:
        if TELL_IMPORTS in os.environ:
            with open(os.environ[TELL_IMPORTS], "w") as told_imports:  # noqa: PTH123
                told_imports.writelines(f"{name}\n" for name in set(sys.modules) - imported)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    else:
        run(sys.argv[1], sys.argv[2:])
