"""Denizen as a stranger meets it: a clone in an empty folder, started with `make run`, spoken to over HTTP."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from tests.servers import free_port

ROOT = Path(__file__).parent.parent


def installed_python(environment: Path, requirements: Path) -> Path:
    """The Python of an environment that is kept, installed again if the list of its packages has changed."""
    python, done = environment / "bin" / "python", environment / "requirements.txt"
    if not done.exists() or done.read_text() != requirements.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
        install = ["-m", "pip", "-qq", "--disable-pip-version-check", "install", "-r", str(requirements)]
        subprocess.run([str(python), *install], check=True)
        done.write_text(requirements.read_text())
    return python


def clone(to: Path) -> Path:
    """A copy of what git has or would take of this tree, without a virtual environment."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return to


def furnish(folder: Path) -> None:
    """Give a clone what `make run` would download and build, linked from here: only what Denizen needs to run. The web
    client is built already, so the npm packages that build it are not needed.

    That `make run` can do so by itself is shown by every clean checkout that comes as far as its tests, and in `make
    test-all`.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    there = next((folder / ".venv" / "lib").glob("python*/site-packages"))
    listed = (ROOT / "requirements" / "run.txt").read_text()
    named = {"pip", *re.findall(r"^([\w.-]+)==", listed, flags=re.MULTILINE)}
    for package in metadata.distributions():
        for file in package.files or () if re.sub(r"[-_.]+", "-", package.name).lower() in named else ():
            if file.parts[0] != "..":
                _link(str(package.locate_file(file)), f"{there}/{file}")
    for source in (ROOT / "src").rglob("*.py"):
        _link_compiled(str(source), str(folder / source.relative_to(ROOT)))
    web_client = "src/denizen/server/web"
    shutil.copytree(ROOT / web_client, folder / web_client, copy_function=_link)
    (folder / web_client / "index.html").touch()


def _link(source: Path | str, target: Path | str) -> None:
    try:
        try:
            os.link(source, target, follow_symlinks=False)
        except FileNotFoundError:  # the first file of its folder
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        return
    except OSError:  # another file system
        shutil.copy2(source, target, follow_symlinks=False)
    _link_compiled(str(source), str(target))


def _link_compiled(source: str, target: str) -> None:
    """So that Python need not compile it again."""
    if source.endswith(".py") and Path(compiled := cache_from_source(source)).is_file():
        _link(compiled, cache_from_source(target))


@dataclass
class House:
    """A running Denizen, and the way in."""

    process: subprocess.Popen[bytes]
    home: Path
    port: int
    output: Path

    @property
    def token(self) -> str:
        return (self.home / "token").read_text().strip()

    def get(self, path: str) -> Any:
        return self._call(urllib.request.Request(self.url(path)))

    def post(self, path: str, body: object) -> Any:
        data = json.dumps(body).encode()
        return self._call(
            urllib.request.Request(self.url(path), data=data, headers={"Content-Type": "application/json"})
        )

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def _call(self, request: urllib.request.Request) -> Any:
        if "/api/" in request.full_url:
            request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=100) as answer:
            return json.load(answer)

    def is_up(self) -> bool:
        try:
            return self.get("/healthz") is not None
        except (urllib.error.URLError, ConnectionError):
            return False

    def space(self, name: str) -> dict[str, Any]:
        spaces = self.get("/api/spaces")["spaces"]
        return next(space for space in spaces if space["name"] == name)

    def said(self, space_id: str) -> list[str]:
        """The conversation, one line a message."""
        page = self.get(f"/api/spaces/{space_id}/messages?limit=100")["messages"]
        return [f"{message['author']['name']}: {message['text']}" for message in page]

    def ask(self, space_id: str, text: str, *, deadline_seconds: float = 100) -> list[str]:
        """Say something, and give the conversation once someone has answered."""
        before = len(self.said(space_id))
        self.post(f"/api/spaces/{space_id}/messages", {"text": text})
        return until(lambda: said if len(said := self.said(space_id)) > before + 1 else None, deadline_seconds)


def until(check: Any, deadline_seconds: float) -> Any:
    """What the check gives once it gives something. Another process has no signal to wait for."""
    deadline = time.monotonic() + deadline_seconds
    while time.monotonic() < deadline:
        if found := check():
            return found
        time.sleep(0.05)
    raise TimeoutError(f"nothing within {deadline_seconds} seconds")


@contextmanager
def started(
    command: list[str],
    folder: Path,
    home: Path,
    *,
    deadline_seconds: float = 300,
    passing: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    finds_port: bool = False,
) -> Iterator[House]:
    """Denizen runs inside, with these variables of ours and these settings; it is told to stop on leaving, and has
    stopped afterwards. With `finds_port`, the command names the port, and the server says which it is."""
    port = free_port()
    output = home.parent / f"{home.name}.out"
    # Nothing of the machine's own environment but what a shell has, and whom it trusts: no keys, no settings.
    kept = ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
    environment = {name: os.environ[name] for name in (*kept, *passing) if name in os.environ}
    environment |= {"HOME": str(home.parent), "DENIZEN_HOME": str(home), "DENIZEN_PORT": str(port)}
    # What was downloaded before need not be downloaded again: what is installed is checked against the same hashes.
    environment |= {"PIP_CACHE_DIR": str(Path.home() / ".cache/pip"), "npm_config_cache": str(Path.home() / ".npm")}
    environment |= settings or {}
    with output.open("ab") as sink:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True
        )
    house = House(process, home, port, output)
    try:
        if finds_port:
            until(lambda: (home / "address").exists() or process.poll() is not None, deadline_seconds)
            house = House(process, home, int((home / "address").read_text().rpartition(":")[2]), output)
        until(lambda: house.is_up() or process.poll() is not None, deadline_seconds)
        assert process.poll() is None, output.read_text()
        yield house
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=100)
