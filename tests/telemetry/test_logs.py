"""Logs: one pipeline for all, to stderr, with what is bound, and without secrets."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import structlog

from denizen.telemetry.logs import CHATTY, Format, Level, configure_logging, get_logger


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Whatever a test configures, the next one finds nothing of it."""
    root = logging.getLogger()
    handlers, level, levels = list(root.handlers), root.level, {name: logging.getLogger(name).level for name in CHATTY}
    with structlog.contextvars.bound_contextvars():
        yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def configured(form: Format = "json", level: Level = "info") -> io.StringIO:
    stream = io.StringIO()
    configure_logging(level, form, stream=stream)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_a_phrase_with_fields_and_what_is_bound() -> None:
    """Agent and cycle are bound once, and stand in every line; times are UTC."""
    stream = configured()
    with structlog.contextvars.bound_contextvars(agent="ada", cycle="c1"):
        structlog.get_logger("denizen.cycles").info("cycle finished", steps=4)
    (line,) = lines(stream)
    moment = datetime.fromisoformat(str(line.pop("timestamp")))
    assert moment.utcoffset() == timedelta(0)
    assert line == {
        "event": "cycle finished",
        "steps": 4,
        "agent": "ada",
        "cycle": "c1",
        "level": "info",
        "logger": "denizen.cycles",
    }


def test_libraries_speak_through_the_same_pipeline() -> None:
    """The standard library's logging ends in the same lines, with its own extras and what is bound."""
    stream = configured()
    with structlog.contextvars.bound_contextvars(agent="ada"):
        logging.getLogger("uvicorn.error").warning("shutting down %s", "now", extra={"port": 8420})
    (line,) = lines(stream)
    assert (line["event"], line["logger"], line["level"]) == ("shutting down now", "uvicorn.error", "warning")
    assert (line["agent"], line["port"]) == ("ada", 8420)


@pytest.mark.parametrize(("level", "heard"), [("debug", 3), ("info", 2), ("error", 1)])
def test_the_level_holds_for_both(level: Level, heard: int) -> None:
    """Ours and theirs alike."""
    stream = configured(level=level)
    for log in (structlog.get_logger("ours"), logging.getLogger("theirs")):
        log.debug("debug")
        log.info("info")
        log.error("error")
    assert len(lines(stream)) == 2 * heard


def test_chatty_libraries_are_heard_when_it_matters() -> None:
    """A line for every HTTP request would drown the rest."""
    stream = configured()
    logging.getLogger("httpx2").info("HTTP Request: GET /")
    logging.getLogger("httpx2").warning("slow")
    assert [line["event"] for line in lines(stream)] == ["slow"]


@pytest.mark.parametrize("form", ["json", "console"])
def test_secrets_do_not_get_through(form: Format) -> None:
    """By name, by look, in nested values, in messages of libraries and in tracebacks."""
    stream = configured(form)
    log = structlog.get_logger("denizen")
    log.info(
        "opened postgresql://ada:hunter2@db/x",
        password="hunter2",
        api_key="hunter2",
        headers={"Authorization": "hunter2", "x": ["Bearer hunter2hunter2"]},
        place=ValueError("redis://:hunter2@cache"),
        tokens=1810,
    )
    logging.getLogger("library").error("key %s is wrong", "sk-hunter2hunter2")
    try:
        raise ValueError("no postgresql://ada:hunter2@db/x")
    except ValueError:
        log.exception("failed")
    written = stream.getvalue()
    assert "hunter2" not in written
    assert "ValueError" in written
    assert "1810" in written


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file holds plain text, and so does the terminal of whoever asks for no colour."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        configure_logging(form="console", stream=stream)
        structlog.get_logger().info("hello", who="ada")
    assert "\x1b[" in terminal.getvalue()
    assert "\x1b[" not in file.getvalue()
    assert "hello" in file.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal()
    configure_logging(form="console", stream=plain)
    structlog.get_logger().info("hello")
    assert "\x1b[" not in plain.getvalue()


def test_configuring_again_replaces_what_was() -> None:
    """No line is written twice."""
    first, second = configured(), configured()
    structlog.get_logger().info("once")
    assert (first.getvalue(), len(lines(second))) == ("", 1)


def test_values_that_are_no_json_are_told_in_their_own_words() -> None:
    """A log line never fails."""
    stream = configured()
    structlog.get_logger().info("odd", where=Path("/tmp/x"), which={1}, what=object)
    (line,) = lines(stream)
    assert (line["where"], line["which"]) == ("/tmp/x", [1])


def test_without_being_told_lines_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """Results on stdout stay readable for programs."""
    configure_logging(form="json")
    structlog.get_logger().info("hello")
    out, err = capsys.readouterr()
    assert (out, json.loads(err)["event"]) == ("", "hello")


def test_a_program_that_uses_denizen_sees_nothing_of_it_unless_it_asks(tmp_path: Path) -> None:
    """A script prints what it prints; with logging turned on it has our lines as well, with their fields."""
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio, logging, sys\n"
        "from denizen import Runtime\n"
        "if sys.argv[1:]: logging.basicConfig(level=sys.argv[1], format='%(name)s: %(message)s')\n"
        "async def main():\n"
        "    async with Runtime() as denizen:\n"
        "        await denizen.people.create('Noor')\n"
        "asyncio.run(main())\n"
    )
    told = [
        subprocess.run([sys.executable, str(script), *level], capture_output=True, text=True, check=True, cwd=tmp_path)
        for level in ([], ["INFO"], ["DEBUG"])
    ]
    assert [each.stdout for each in told] == ["", "", ""]
    assert told[0].stderr == ""
    assert "model found" not in told[1].stderr
    assert "denizen.api.wiring: model found model='" in told[2].stderr


def test_our_lines_in_a_program_s_own_logging(caplog: pytest.LogCaptureFixture) -> None:
    """Fields and what is bound stand in the message, without secrets; a traceback is given as logging gives one."""
    structlog.reset_defaults()
    log = get_logger("denizen.cycles")
    with caplog.at_level("INFO"), structlog.contextvars.bound_contextvars(agent="ada"):
        log.debug("not wanted")
        log.info("100 % done", steps=4, password="hunter2")
        try:
            raise ValueError("no milk")
        except ValueError:
            log.exception("failed")
    done, failed = caplog.records
    assert (done.name, done.getMessage()) == ("denizen.cycles", "100 % done steps=4 password='•••' agent='ada'")
    assert failed.exc_info is not None
    assert "no milk" in caplog.text


def test_a_program_that_configured_structlog_has_our_lines_in_it() -> None:
    """Also where it does so after Denizen was imported."""
    log = get_logger("denizen.cycles")
    with structlog.testing.capture_logs() as logs:
        log.debug("cycle finished", steps=4)
    assert logs == [{"event": "cycle finished", "steps": 4, "log_level": "debug"}]
