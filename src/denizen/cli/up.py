"""`denizen up`: runs the server and the agents in one process, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from denizen import __version__
from denizen.access import secrets, tokens
from denizen.app import Runtime
from denizen.cli.console import begin, labelled, stderr, stdout
from denizen.cli.fast_import import importing
from denizen.cli.home import TOKEN_FILE, announced_address, open_home
from denizen.errors import DenizenError
from denizen.first_start import World
from denizen.ids import EntityId, OrganizationId
from denizen.masking import masked
from denizen.notifications.pushing import Pusher
from denizen.server.alerting import Receiver, keep_telling
from denizen.server.application import create_app
from denizen.server.connections import raise_descriptor_limit
from denizen.server.context import ServerLimits
from denizen.server.reach import reach_of
from denizen.server.running import run_server
from denizen.server.serving import Tls, bind, check_tls, serve_on
from denizen.settings.loopback import is_loopback
from denizen.settings.shape import Settings
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.spaces.handles import MAX_NAME_CHARS
from denizen.storage.database import Tx
from denizen.tools.outbound import Outbound


def up(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on; 0 for any free port.")] = None,
    model: Annotated[str | None, typer.Option(help="The default model of agents.")] = None,
) -> None:
    """Start the server and run the agents, until Ctrl-C or SIGTERM."""
    options = {"host": host, "port": port, "model": model}
    loaded = begin(context, {name: value for name, value in options.items() if value is not None})
    run_server(_up(loaded.settings))


async def _up(settings: Settings) -> None:
    # First, so that unsafe settings and a taken port are reported before anything is created.
    reach, tls = reach_of(settings), _tls(settings)
    if tls is not None:
        check_tls(tls)
    listener = bind(settings.host, settings.port, beyond_loopback=not is_loopback(settings.host))
    # With port 0 it is known only now.
    settings = settings.model_copy(update={"port": listener.getsockname()[1]})
    raise_descriptor_limit()
    told, stop, ready = StopSignals(), asyncio.Event(), asyncio.Event()
    async with AsyncExitStack() as stack:
        stack.callback(listener.close)
        with importing("denizen.agents.residents"):
            home = await stack.enter_async_context(open_home(settings))
            runtime = home.runtime
            token = await _owners_token(runtime, settings.home, home.world)
            await stack.enter_async_context(runtime.living())
        receiver = _receiver_of_alerts(settings)
        if receiver is not None:
            await stack.enter_async_context(receiver.outbound)
        push = await stack.enter_async_context(_pushing(runtime, settings))
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        limits = ServerLimits(**settings.limits.model_dump())
        known = settings.oidc_client_secret
        app = create_app(
            runtime,
            limits=limits,
            reach=reach,
            oidc=settings.oidc,
            oidc_client_secret="" if known is None else known.get_secret_value(),
            push=push,
            on_demand=True,
        )
        tasks.create_task(serve_on(app, listener, ready=ready, stop=stop, tls=tls), name="http server")
        tasks.create_task(keep_telling(runtime, receiver, stop), name="alerts to owners")
        await ready.wait()
        stack.enter_context(announced_address(settings.home, settings.address))
        address = settings.public_url or settings.address
        # Without a terminal the output ends in a journal, in Docker's logs or in a file: secrets stay out of it.
        shown = await _secrets(runtime, home.world, address, token) if sys.stdout.isatty() else None
        _say_hello(
            settings,
            address,
            (runtime.server_models.reason, await _trouble_with_model(runtime, home.world.owner.organization_id)),
            await runtime.db.read(_residents, home.world.owner),
            shown,
        )
        await told.once.wait()
        stderr().print("Stopping: agents finish what they are doing. Once more hurries them.", style="dim")
        told.twice_calls(runtime.hurry)
        # The server keeps running meanwhile: readers of streams read to the end, and new requests are sent elsewhere.
        await runtime.drain()
        stop.set()
    stderr().print("Stopped. Everything is saved.", style="dim")


class StopSignals:
    """SIGINT and SIGTERM: the first one asks to stop, any further one to hurry."""

    def __init__(self) -> None:
        self.once = asyncio.Event()
        self._hurry: Callable[[], None] | None = None
        self._hurried = False
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._hear)

    def twice_calls(self, hurry: Callable[[], None]) -> None:
        """Calls `hurry` with a further signal, also if that has come already."""
        self._hurry = hurry
        if self._hurried:
            hurry()

    def _hear(self) -> None:
        self._hurried = self.once.is_set()
        self.once.set()
        if self._hurried and self._hurry is not None:
            self._hurry()


async def _owners_token(runtime: Runtime, home: Path, world: World) -> str | None:
    """Creates a token for the owner, if the server is new or its token was lost; None if there is one already.

    A new one replaces the token that was made for this folder before.
    """
    path = home / TOKEN_FILE
    if path.exists() and not world.new:
        return None
    secret = await runtime.db.write(_create_token, world.owner.id, token_name(home))
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret + "\n")
    return secret


def token_name(home: Path) -> str:
    """The name of the token in this folder. Instances with one database have folders of their own."""
    place = "".join(char if char.isprintable() else "?" for char in f"{socket.gethostname()}:{home}")
    prefix = "command line, "
    room = MAX_NAME_CHARS - len(prefix)
    return prefix + (place if len(place) <= room else f"…{place[1 - room :]}")


@dataclass(frozen=True, slots=True)
class _Secrets:
    """What is shown only on a terminal."""

    token: str | None
    """The owner's token, if it was made just now."""
    login_link: str


async def _secrets(runtime: Runtime, world: World, address: str, token: str | None) -> _Secrets:
    _, secret = await runtime.db.write(tokens.create_login, world.owner.id)
    return _Secrets(token, tokens.login_url(address, secret))


def _receiver_of_alerts(settings: Settings) -> Receiver | None:
    url, secret = settings.alerts.webhook_url, settings.alerts_secret
    if url is None:
        return None
    return Receiver(url, None if secret is None else secret.get_secret_value(), settings.alerts.allow_private)


@asynccontextmanager
async def _pushing(runtime: Runtime, settings: Settings) -> AsyncGenerator[Pusher | None]:
    """Notifies people in their browsers inside the block, unless that is switched off."""
    if not settings.push.enabled:
        yield None
        return
    async with Outbound() as outbound:
        pusher = Pusher(
            runtime.db,
            runtime.clock,
            runtime.vault,
            outbound,
            public_url=runtime.public_url,
            allow_private=settings.push.allow_private,
        )
        runtime.hint_news = pusher.hint
        async with pusher.running():
            yield pusher
        runtime.hint_news = None


def _tls(settings: Settings) -> Tls | None:
    certificate, key = settings.tls.certificate, settings.tls.key
    return None if certificate is None or key is None else Tls(certificate, key)


def _create_token(tx: Tx, owner: EntityId, name: str) -> str:
    return tokens.replace_named(tx, owner, name)[1]


def _residents(tx: Tx, owner: Entity) -> tuple[list[str], list[str]]:
    agents = [each.name for each in directory.list_entities(tx, owner.organization_id) if each.kind == "agent"]
    return agents, [space.name for space in directory.spaces_of(tx, owner.id)]


async def _trouble_with_model(runtime: Runtime, organization_id: OrganizationId) -> str | None:
    """Returns why agents cannot use the default model, as far as known without a request: a missing key, for one."""
    name = runtime.default_model
    key = runtime.model_catalog.key_name(name)
    try:
        value = None if key is None else await runtime.db.read(secrets.resolve, runtime.vault, organization_id, key)
        runtime.model_catalog.resolve(name, value)
    except DenizenError as error:
        return masked(str(error))
    return None


def _say_hello(
    settings: Settings,
    address: str,
    model: tuple[str, str | None],
    residents: tuple[list[str], list[str]],
    secrets: _Secrets | None,
) -> None:
    agents, spaces = residents
    lines = labelled()
    lines.add_row("address", address)
    lines.add_row("data", masked(settings.database_url))
    why_model, trouble = model
    lines.add_row("model", why_model)
    if trouble is not None:
        lines.add_row("", Text(trouble, style="yellow"))
    lines.add_row("agents", ", ".join(agents) or "none yet")
    lines.add_row("spaces", ", ".join(spaces) or "none yet")
    kept_in = Text(str(settings.home / TOKEN_FILE))
    if secrets is None:
        lines.add_row("token", Text.assemble("kept in ", kept_in))
    elif secrets.token is not None:
        lines.add_row("token", Text(secrets.token, style="bold"))
        lines.add_row("", Text.assemble("shown only once; kept for this machine in ", kept_in))
    lines.add_row("budget", Text(_budget(settings)))
    lines.add_row("talk", f"{_called()} chat")
    console = stdout()
    console.print(f"[bold]Denizen {__version__}[/bold] is up. Ctrl-C stops it.")
    console.print(lines)
    if secrets is None:
        # Not in the table, which would wrap the command.
        console.print(Text.assemble(("sign in  ", "dim"), f"`{_called()} login` prints a link"), soft_wrap=True)
    else:
        # Not in the table, which would cut it: a link has to stay whole to be opened.
        console.print(Text.assemble(("sign in  ", "dim"), secrets.login_link), soft_wrap=True)
        console.print(f"         once, in the next ten minutes; `{_called()} login` makes another", style="dim")
    console.file.flush()  # Under a supervisor, stdout is not a terminal and would buffer this.


def _budget(settings: Settings) -> str:
    """Returns the daily limit of the server, and where to change it."""
    limits = settings.budget
    dollars = f"${limits.dollars_per_day:g}" if limits.dollars_per_day else ""
    tokens = f"{limits.tokens_per_day:,} tokens" if limits.tokens_per_day else ""
    parts = [part for part in (dollars, tokens) if part]
    if not parts:
        return "no daily limit"
    return f"at most {' and '.join(parts)} a day for all agents; change it under [budget] in denizen.toml"


def _called() -> str:
    """Returns what to type for `denizen` here: if it is not on the path, as after `make run`, the file that
    was called.
    """
    called = Path(sys.argv[0])
    if shutil.which("denizen") is not None or called.name != "denizen":
        return "denizen"
    try:
        return str(called.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(called)
