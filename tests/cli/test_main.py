"""The command itself: fast where it only tells, clear where it fails, quiet where nobody listens any more."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import denizen
from denizen import __version__
from denizen.cli.main import COMMANDS, ListedCommand, argument_usage, command_of, main
from denizen.errors import DatabaseLocked
from tests.cli.conftest import Run

SOURCE = str(Path(__file__).parents[2] / "src")


def start(
    *arguments: str, stdin: int | None = None, stdout: int = subprocess.PIPE, environ: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Python in a process of its own, with these arguments."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": SOURCE} | (environ or {}),
        text=True,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def place_of(command: str) -> str:
    return next(entry.place for entry in COMMANDS if entry.name == command)


@pytest.fixture
def broken_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    """A `denizen chat` that finds its database locked."""

    def chat() -> None:
        raise DatabaseLocked("Another program holds postgresql://ada:hunter2@db/x.")

    name, _, attribute = place_of("chat").partition(":")
    module = ModuleType(name)
    module.__dict__[attribute] = chat
    monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.parametrize(
    ("command", "instead"),
    [("logs", "journalctl --unit denizen"), ("start", "denizen up"), ("stop", "Ctrl-C"), ("status", "denizen doctor")],
)
def test_commands_that_other_servers_have_name_what_to_use_instead(run: Run, command: str, instead: str) -> None:
    ended = run(command, "--follow")
    assert ended.exit_code == 2
    assert f"There is no command '{command}'." in ended.stderr
    assert instead in " ".join(ended.stderr.replace("│", " ").split())


def test_the_version_is_told(run: Run) -> None:
    """And nothing else, so that scripts can read it."""
    assert run("--version").stdout == f"denizen {__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_the_help_lists_every_command_with_examples(run: Run, arguments: tuple[str, ...]) -> None:
    """Whoever types the bare name is helped as well."""
    result = run(*arguments)
    assert result.exit_code == 0
    for entry in COMMANDS:
        assert entry.help in result.stdout
        assert entry.panel in result.stdout
    assert "denizen doctor" in result.stdout


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_every_command_has_help_of_its_own(run: Run, name: str) -> None:
    """It is found where it is said to be."""
    result = run(name, "--help")
    assert result.exit_code == 0, result.output
    assert f"denizen {name}" in result.stdout


def below(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The command and all its subcommands, as they are typed."""
    yield name, command
    for each, inner in getattr(command, "commands", {}).items():
        yield from below(inner, f"{name} {each}")


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_help_names_values_and_never_a_python_type(run: Run, entry: ListedCommand) -> None:
    """A flag that seems to take a `<bool>`, and a `{text}` in braces, are riddles to people who do not write Python.

    The usage is that of docs/cli.md.
    """
    for name, command in below(command_of(entry), entry.name):
        shown = run(*name.split(" "), "--help").stdout
        assert not re.search(r"<[a-z]", shown), shown
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        usage = ["[OPTIONS]", *map(argument_usage, arguments)]
        assert f"Usage: denizen {name} {' '.join(usage)}" in " ".join(shown.split()), shown


def test_a_missing_argument_has_the_name_that_the_usage_shows(run: Run) -> None:
    result = run("send", "Lobby")
    assert result.exit_code == 2
    assert "Usage: denizen send [OPTIONS] SPACE TEXT" in result.stderr
    assert "Missing argument 'TEXT'" in result.stderr


def test_help_and_version_load_no_language_model() -> None:
    """They answer at once because what they do not need is not imported."""
    program = (
        "import sys\n"
        "from denizen.cli.main import app\n"
        "from typer.testing import CliRunner\n"
        "for arguments in (['--help'], ['--version']):\n"
        "    assert CliRunner().invoke(app, arguments).exit_code == 0\n"
        "heavy = {'pydantic_ai', 'pydantic', 'sqlalchemy', 'fastapi', 'denizen.app', 'structlog'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    with start("-c", program) as process:
        out, err = process.communicate()
    assert (out, err) == ("[]\n", "")


def test_an_error_of_ours_is_one_sentence(run: Run, broken_chat: None) -> None:
    """On stderr, with its code, without a traceback and without secrets; the status says that it failed."""
    result = run("chat")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Another program holds postgresql://ada:•••@db/x. [database_locked]\n"


def test_verbose_shows_where_an_error_came_from(run: Run, broken_chat: None) -> None:
    """For whoever reports it; secrets stay hidden even there."""
    result = run("--verbose", "chat")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "test_main.py" in result.stderr
    assert "hunter2" not in result.stderr


@pytest.mark.parametrize("arguments", [("nothing",), ("--nothing",), ("doctor", "--nothing")])
def test_wrong_usage_has_a_status_of_its_own(run: Run, arguments: tuple[str, ...]) -> None:
    """Scripts tell a typing mistake from a failure."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert "nothing" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("mind", "ada"), "`denizen mind` has no command 'ada'. There are: show, history,"),
        (("agents", "lsit"), "`denizen agents` has no command 'lsit'. Did you mean 'list'?"),
        (("webhooks", "create"), "`denizen webhooks` has no command 'create'. There are: add, list,"),
    ],
)
def test_an_unknown_subcommand_names_those_there_are(run: Run, arguments: tuple[str, ...], told: str) -> None:
    """ "No such command 'ada'" helped nobody who had left out `show`."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.replace("│", " ").split())


def test_an_address_without_its_scheme_is_told(run: Run) -> None:
    """It was not known to be the server of this home, so that a token was asked for."""
    result = run("inspect", "ada", "--url", "127.0.0.1:8420")
    assert "127.0.0.1:8420 is not the address of a server. Write http://127.0.0.1:8420 or" in result.stderr


def test_a_command_that_is_not_there_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of a traceback about a module."""
    monkeypatch.setitem(sys.modules, place_of("chat").partition(":")[0], None)
    result = run("chat")
    assert result.exit_code == 1
    assert result.stderr.startswith("This Denizen was built without the command 'chat'.")


def start_waiting_chat(disposition: str) -> subprocess.Popen[str]:
    """A `denizen chat` that waits for the end of its input, with SIGINT as the shell that started it has left it."""
    place, _, attribute = place_of("chat").partition(":")
    program = (
        "import signal, sys, types\n"
        f"signal.signal(signal.SIGINT, signal.{disposition})\n"
        "from denizen.cli.main import main\n"
        "def wait():\n"
        "    print('waiting', flush=True)\n"
        "    sys.stdin.read()\n"
        f"sys.modules[{place!r}] = types.SimpleNamespace({attribute}=wait)\n"
        "sys.argv = ['denizen', 'chat']\n"
        "main()\n"
    )
    process = start("-c", program, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    return process


def test_interrupting_is_quiet() -> None:
    """Ctrl-C ends a command with the status that shells expect, and without a word."""
    with start_waiting_chat("default_int_handler") as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "")


def test_interrupting_while_modules_load_is_quiet_too(tmp_path: Path) -> None:
    """The first import of the command line interrupts it here: no traceback about a module that nobody knows."""
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    # As in a terminal: tests that are started in the background hand on that it is ignored.
    program = (
        "import runpy, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "runpy.run_module('denizen', run_name='__main__')\n"
    )
    with start("-c", program, environ={"PYTHONPATH": f"{tmp_path}:{SOURCE}"}) as process:
        out, err = process.communicate()
    assert (process.returncode, out, err) == (-signal.SIGINT, "", "")


def test_a_command_in_the_background_ignores_ctrl_c() -> None:
    """Scripts start background commands with SIGINT ignored, so that Ctrl-C ends only what runs in the foreground."""
    with start_waiting_chat("SIG_IGN") as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate("the end")
    assert (process.returncode, out, err) == (0, "", "")


def test_a_reader_who_leaves_is_no_error(environ: dict[str, str]) -> None:
    """`denizen config | head -1` ends without complaint."""
    reading, writing = os.pipe()
    os.close(reading)
    with start("-m", "denizen", "config", stdout=writing) as process:
        os.close(writing)
        _, err = process.communicate()
    assert (process.returncode, err) == (1, "")


def test_output_that_cannot_be_written_is_told_in_a_sentence(environ: dict[str, str]) -> None:
    """`denizen config > file` on a full disk ended with a traceback, twice."""
    with Path("/dev/full").open("w") as full, start("-m", "denizen", "config", stdout=full.fileno()) as process:
        _, err = process.communicate()
    assert process.returncode == 1
    assert err.startswith("The output cannot be written: there is no space left on its device.")
    assert err.count("\n") == 1


def test_shells_complete_commands(environ: dict[str, str]) -> None:
    """What Tab offers are the commands, with nothing imported for it."""
    asked = {"_DENIZEN_COMPLETE": "complete_bash", "COMP_WORDS": "denizen ", "COMP_CWORD": "1"}
    with start("-m", "denizen", environ=asked) as process:
        out, err = process.communicate()
    assert err == ""
    assert set(out.split()) >= {entry.name for entry in COMMANDS}


def test_public_names_load_when_they_are_used() -> None:
    """The names are there for `from denizen import …`, for `dir()`, and no others are."""
    for name in denizen.__all__:
        assert getattr(denizen, name) is not None
        assert name in dir(denizen)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = denizen.nothing  # pyright: ignore[reportAttributeAccessIssue]


def test_garbage_is_collected_again_once_a_command_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    umask = os.umask(0o077)
    gc.disable()
    try:
        command_of(COMMANDS[0])
        assert gc.isenabled()
        monkeypatch.setattr(sys, "argv", ["denizen", "--version"])
        with pytest.raises(SystemExit):
            main()
        assert gc.isenabled(), "also where there was no command"
    finally:
        gc.enable()
        os.umask(umask)
