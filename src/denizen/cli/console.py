"""Shared by all commands: start-up, output, errors."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from denizen.errors import DenizenError, InvalidInput, RequestRefused
from denizen.masking import masked

if TYPE_CHECKING:
    from pathlib import Path

    import typer
    from rich.console import Console
    from rich.table import Table

    from denizen.settings.loading import LoadedSettings


MADE_FROM_OUTSIDE: Final = "made from text from outside"
"""Shown beside what an agent wrote after it had read such text."""
_INVISIBLE: Final = ("Cc", "Cs", "Co", "Zl", "Zp")
_BIDI: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    """Makes control characters in the text visible."""
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    return "".join(each if each == "\n" or _is_harmless(each) else "\ufffd" for each in text)


def _is_harmless(character: str) -> bool:
    return character not in _BIDI and unicodedata.category(character) not in _INVISIBLE


def is_verbose(context: typer.Context) -> bool:
    """Whether `-v` was given before the command."""
    return bool(context.find_root().params.get("verbose"))


def begin(context: typer.Context, options: Mapping[str, object] | None = None) -> LoadedSettings:
    """The settings, with `options` on top; logging works, and the providers' libraries find what .env says.

    For a command that runs agents or a server. It is called once, first.
    """
    from denizen.settings.loading import export_dotenv, load
    from denizen.telemetry.logs import configure_logging

    loaded = load(options)
    export_dotenv(loaded)
    configure_logging("debug" if is_verbose(context) else loaded.settings.log_level, loaded.settings.log_format)
    return loaded


def stdout() -> Console:
    """For results."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def stderr() -> Console:
    """For everything that is not a result."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def labelled() -> Table:
    """Creates a table of two columns: labels, and what they mean."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def new_table(*titles: str) -> Table:
    """Creates a table with these columns. Their cells are folded, never cut; commands add columns of other kinds."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def print_json(value: Any) -> None:
    """Prints the value, which may contain shapes, as JSON on stdout, for programs: never coloured, never wrapped."""
    told = json.dumps(value, indent=2, ensure_ascii=False, default=lambda shape: shape.model_dump(mode="json"))
    sys.stdout.write(f"{told}\n")


def read_stdin() -> str:
    """Returns the text of stdin. Raises `InvalidInput` if it is not UTF-8."""
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise InvalidInput("The text on stdin is not UTF-8. Convert it, then send it again.") from error


def given_text(argument: str) -> str:
    """Returns the text of an argument; `-` stands for that of stdin."""
    return read_stdin() if argument == "-" else argument


def write_document(text: str, output: Path | None) -> None:
    """Writes the text to the file; without one, or with `-`, to stdout, for a terminal without control characters."""
    if output is None or str(output) == "-":
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{output} cannot be written ({error.strerror}).") from error


def print_error(error: DenizenError, *, with_traceback: bool = False) -> None:
    """Prints the error in red on stderr, with its code."""
    import traceback

    from rich.text import Text

    console = stderr()
    if with_traceback:
        console.print(Text(masked("".join(traceback.format_exception(error))).rstrip(), style="dim"))
    # A refused request has the server's code.
    code = error.problem if isinstance(error, RequestRefused) and error.problem else error.code
    console.print(Text.assemble((masked(str(error)), "red"), (f" [{code}]", "dim red")), soft_wrap=True)
