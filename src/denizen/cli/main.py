"""The command `denizen`: its subcommands, and its error handling.

A command's module is imported when the command is used, so that `--help`, `--version` and completion stay fast. A
command is a plain function with Typer's annotations, or a `Typer` if it has subcommands; it raises `DenizenError` if it
cannot continue, which becomes one sentence on stderr and exit status 1.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from denizen import __version__
from denizen.errors import DenizenError
from denizen.nearest import nearest


@dataclass(frozen=True, slots=True)
class ListedCommand:
    """A command as the help lists it, and its location."""

    name: str
    place: str
    """`module:attribute`."""
    help: str
    panel: str


COMMANDS: Final = (
    ListedCommand("up", "denizen.cli.up:up", "Start the server and run the agents.", "Work with agents"),
    ListedCommand("chat", "denizen.cli.chat.command:chat", "Talk with agents in the terminal.", "Work with agents"),
    ListedCommand("apply", "denizen.cli.apply:apply", "Create and change agents from files.", "Work with agents"),
    ListedCommand(
        "webhooks",
        "denizen.cli.webhooks:app",
        "Manage webhooks of services.",
        "Work with agents",
    ),
    ListedCommand("bridges", "denizen.cli.bridges:app", "Connect chat rooms of other services.", "Work with agents"),
    ListedCommand("agents", "denizen.cli.agents:app", "Manage agents.", "Work with agents"),
    ListedCommand("spaces", "denizen.cli.spaces:app", "Manage spaces.", "Work with agents"),
    ListedCommand("panel", "denizen.cli.panel.command:app", "Ask several advisors at once.", "Work with agents"),
    ListedCommand("send", "denizen.cli.send:send", "Post a message in a space.", "Work with agents"),
    ListedCommand("trigger", "denizen.cli.send:trigger", "Send an event to an agent.", "Work with agents"),
    ListedCommand(
        "approvals", "denizen.cli.approvals:app", "Approve or refuse what agents want to do.", "Work with agents"
    ),
    ListedCommand("inspect", "denizen.cli.inspect:inspect", "Show the state of an agent.", "Inspect agents"),
    ListedCommand(
        "replay", "denizen.cli.replay:replay", "Show past requests, and try another model.", "Inspect agents"
    ),
    ListedCommand("memory", "denizen.cli.memory.command:app", "List, search and forget memories.", "Inspect agents"),
    ListedCommand("fork", "denizen.cli.fork:fork", "Copy an agent with its history.", "Inspect agents"),
    ListedCommand("mind", "denizen.cli.mind:app", "Show and change an agent's states of mind.", "Inspect agents"),
    ListedCommand("profiles", "denizen.cli.profiles:app", "Manage prompt profiles.", "Administration"),
    ListedCommand("forget", "denizen.cli.forget:app", "Remove messages, people or spaces for good.", "Administration"),
    ListedCommand("token", "denizen.cli.token:app", "Create and revoke access tokens.", "Administration"),
    ListedCommand("login", "denizen.cli.login:login", "Print a sign-in link for a browser.", "Administration"),
    ListedCommand("secrets", "denizen.cli.secrets:app", "Manage API keys and secrets.", "Administration"),
    ListedCommand("mcp", "denizen.cli.mcp:app", "Sign in to MCP servers.", "Administration"),
    ListedCommand("audit", "denizen.cli.audit:audit", "Show who changed what, and when.", "Administration"),
    ListedCommand("export", "denizen.cli.export:export", "Write an agent or a space to a file.", "Administration"),
    ListedCommand("import", "denizen.cli.export:import_", "Import an exported file.", "Administration"),
    ListedCommand("check", "denizen.cli.check:check", "Check the database for broken invariants.", "Administration"),
    ListedCommand("migrate", "denizen.cli.migrate:migrate", "Update the database schema.", "Administration"),
    ListedCommand("models", "denizen.cli.models:app", "Show, test and choose models.", "Administration"),
    ListedCommand(
        "doctor", "denizen.cli.doctor:doctor", "Check the installation, and say how to fix it.", "Administration"
    ),
    ListedCommand("backup", "denizen.cli.backup:backup", "Write a backup to a file.", "Administration"),
    ListedCommand("restore", "denizen.cli.backup:restore", "Restore a backup.", "Administration"),
    ListedCommand("config", "denizen.cli.config:app", "Show every setting and its source.", "Administration"),
)

EXAMPLES: Final = """\
[bold]Examples[/bold]

[cyan]denizen up[/cyan]  start on http://127.0.0.1:8420

[cyan]denizen chat[/cyan]  talk with the agents of a running server

[cyan]denizen doctor[/cyan]  check the installation

[cyan]DENIZEN_PORT=9000 denizen config[/cyan]  see what is set, and by what
"""


INSTEAD: Final = {
    "logs": (
        "The server writes its log to its own output: in the terminal of `denizen up`, with systemd in `journalctl "
        "--unit denizen`, with Docker in `docker compose logs`. Who changed what is in `denizen audit`."
    ),
    "start": "`denizen up` starts the server.",
    "status": "`denizen doctor` says whether the server runs, and what is wrong.",
    "stop": (
        "Stop the server where it was started: with Ctrl-C in the terminal of `denizen up`, `systemctl stop denizen` "
        "or `docker compose stop`."
    ),
}
"""Commands that other servers have, and what to use instead."""


class _Lazy(TyperCommand):
    """A command of which only the name and help are loaded until it is used."""

    def __init__(self, entry: ListedCommand) -> None:
        super().__init__(entry.name, help=entry.help, rich_help_panel=entry.panel)
        self._entry = entry

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        return command_of(self._entry).make_context(*args, **kwargs)


class _Group(TyperGroup):
    """All commands. Handles our errors for each of them in the same way."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for entry in COMMANDS:
            self.add_command(_Lazy(entry))

    def get_params(self, ctx: Any) -> Any:
        return [_with_plain_help(each) for each in super().get_params(ctx)]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and (instead := INSTEAD.get(args[0])) is not None:
            ctx.fail(f"There is no command {args[0]!r}. {instead}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except DenizenError as error:
            from denizen.cli.console import print_error

            print_error(error, with_traceback=ctx.params.get("verbose", False))
            raise typer.Exit(1) from error


def command_of(entry: ListedCommand) -> Any:
    """Imports the command."""
    module, _, attribute = entry.place.partition(":")
    try:
        target = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # The command exists, but something that it needs is missing.
        raise DenizenError(f"This Denizen was built without the command {entry.name!r}.") from error
    if not gc.isenabled():  # Disabled by `main` until everything is imported.
        gc.freeze()
        gc.enable()
    if not isinstance(target, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(entry.name, help=entry.help if target.__doc__ is None else None)(target)
        target = alone
    _give_api(target)
    command = typer.main.get_command(target)
    command.name = entry.name
    _give_plain_help(command)
    _name_subcommands(command)
    return command


def _name_subcommands(command: Any) -> None:
    """Lets the error for an unknown subcommand name the nearest one, or all of them: `denizen mind ada`."""
    known: Mapping[str, Any] = getattr(command, "commands", {})
    if not known:
        return
    own: Callable[[Any, list[str]], Any] = command.resolve_command

    def resolve_command(ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in known and not args[0].startswith("-"):
            near = nearest(args[0], known)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(known)}."
            ctx.fail(f"`{ctx.command_path}` has no command {args[0]!r}. {hint}")
        return own(ctx, args)

    command.resolve_command = resolve_command
    for inner in known.values():
        _name_subcommands(inner)


def _give_plain_help(command: Any) -> None:
    """Lets the help of the command and its subcommands name values as docs/cli.md does."""
    own: Callable[[Any], list[Any]] = command.get_params

    def get_params(ctx: Any) -> list[Any]:
        return [_with_plain_help(each) for each in own(ctx)]

    command.get_params = get_params  # Not its `params`: the option --help is not among them.
    for inner in getattr(command, "commands", {}).values():
        _give_plain_help(inner)


def _with_plain_help(parameter: Any) -> Any:
    """Names the value of the parameter, as in `--model MODEL` and `SPACE`.

    Typer shows the Python type instead, `<list[str]>`, even of flags that take no value, and puts braces around an
    argument that is required.
    """
    name = argument_name(parameter)
    if parameter.param_type_name == "argument":
        parameter.metavar = name
        parameter.get_usage_pieces = partial(_usage_pieces, parameter)
        parameter.display_type_rich = _no_type
    else:
        parameter.metavar = "" if parameter.is_flag or parameter.count else name
    return parameter


def _usage_pieces(argument: Any, ctx: Any) -> list[str]:  # noqa: ARG001  the library's parameters
    return [argument_usage(argument)]


def _no_type(ctx: Any) -> None:  # noqa: ARG001  the library's parameters
    return None


def argument_usage(argument: Any) -> str:
    """Returns the argument as a usage line shows it: `SPACE`, `[SPACE]` or `[FILE]...`."""
    name = argument_name(argument)
    shown = name if argument.required else f"[{name}]"
    return f"{shown}..." if argument.nargs == -1 else shown


def argument_name(parameter: Any) -> str:
    """Returns what stands for the parameter's value: `MODEL`."""
    return (parameter.metavar or parameter.name.upper()).strip("[].")


def _give_api(app: typer.Typer) -> None:
    """Gives the options --json, --url and --token to each command whose first parameter is an `api`."""
    for each in app.registered_commands:
        if each.callback is not None and next(iter(signature(each.callback).parameters), "") == "api":
            from denizen.cli.api import with_api

            each.callback = with_api(each.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _give_api(group.typer_instance)


app = typer.Typer(
    name="denizen",
    cls=_Group,
    help="A self-hosted runtime for living agents: one inbox, one continuous mind, a life in shared spaces.",
    epilog=EXAMPLES,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"denizen {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log everything, and show where an error came from.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    # Read by `console.is_verbose` and by `_show_version`.
    del verbose, version
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Runs the command line of this process, and exits."""
    # Files of this process and its programs are for its user only: conversations, exports, backups.
    os.umask(0o077)
    # What is imported stays to the end. Garbage collection of it took a quarter of a start.
    gc.disable()
    try:
        try:
            typer.main.get_command(app).main(prog_name="denizen")
        finally:
            gc.enable()
            sys.stdout.flush()  # Here, where errors can be caught, and not when Python exits.
    except BrokenPipeError:
        # The reader of our output has closed the pipe. What is still buffered is dropped silently.
        _drop_output()
        sys.exit(1)
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        _drop_output()
        sys.stderr.write(
            "The output cannot be written: there is no space left on its device. Free some, then repeat it.\n"
        )
        sys.exit(1)


def _drop_output() -> None:
    """Python writes what is still buffered when it exits, and would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
