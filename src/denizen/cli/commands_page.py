"""Generates docs/cli.md: every command with its arguments and options, from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final

from denizen.cli.main import COMMANDS, argument_usage, command_of

_HEAD: Final = """\
# The command line

Commands use the [HTTP API](http.md). With `--url` and `--token`, or `DENIZEN_URL` and `DENIZEN_TOKEN` in the
environment, they ask that server with the rights of the token. Without, they ask the server that
`denizen up` runs on this machine's home folder, with the token that is kept there. If none runs, they open the database
that the [settings](settings.md) name and call the server's application in their own process, as the owner, without a
port and without a token; agents live in it only for `chat` and while a panel answers. `token`, `login` and `secrets`
without `--url` work on the database directly, so that they work without a token. `up`, `check`, `migrate`,
`doctor`, `backup`, `restore` and `config` work on this machine only; so do `profiles check`
and `profiles init`, which read and write files.

Results go to stdout, everything else to stderr. With `--json` a result is JSON, for programs. What goes wrong is one
sentence with a code in brackets, and status 1; a command that is used wrongly has status 2. `-v` before the command
logs everything, and shows where an error came from.

The [log](telemetry.md#logs) of the server is its output: it is in the terminal of `denizen up`, with systemd in
`journalctl --unit denizen`, with Docker in `docker compose logs`. There is no log file; `denizen up 2> denizen.log`
writes one.

This page is made by `denizen config commands`.
"""


def render() -> str:
    """Renders the whole page."""
    panels: dict[str, list[str]] = {}
    for entry in COMMANDS:
        panels.setdefault(entry.panel, []).extend(_sections(command_of(entry), f"denizen {entry.name}", entry.help))
    parts = [_HEAD]
    for panel, sections in panels.items():
        parts += [f"## {panel}\n", *sections]
    return "\n".join(parts)


def _sections(command: Any, name: str, otherwise: str) -> Iterator[str]:
    """Yields a section for the command, and one for each of its subcommands."""
    below: dict[str, Any] = getattr(command, "commands", {})
    yield "\n".join(_section(command, name, otherwise, with_usage=not below))
    for each, inner in below.items():
        yield from _sections(inner, f"{name} {each}", "")


def _section(command: Any, name: str, otherwise: str, *, with_usage: bool) -> Iterator[str]:
    yield f"### `{name}`\n"
    yield _told(command.help or otherwise) + "\n"
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and each.name != "help"]
    if with_usage:
        words = [name, *(argument_usage(each) for each in arguments), *(["[OPTIONS]"] if options else [])]
        yield f"```console\n$ {' '.join(words)}\n```\n"
    rows = [(f"`{argument_usage(each)}`", each.help) for each in arguments] + [
        (f"`{_option(each)}`", each.help) for each in options
    ]
    if rows:
        yield "| | |\n|---|---|"
        yield from (f"| {_told(left)} | {_told(right)} |" for left, right in rows)
        yield ""


def _option(parameter: Any) -> str:
    names = ", ".join([*sorted(parameter.opts, key=len, reverse=True), *parameter.secondary_opts])
    if parameter.is_flag:
        return names
    return f"{names} {(parameter.metavar or parameter.name).upper()}"


def _told(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace("|", "\\|")
