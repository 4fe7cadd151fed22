"""Connects a command to the HTTP API: of the named server, of the server that runs on this home, or of the same
application in this process.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, overload

import typer
from rich.text import Text

from denizen.cli.chat.finding import find_space
from denizen.cli.console import begin, print_json, stderr, stdout
from denizen.cli.fast_import import importing
from denizen.cli.home import TOKEN_FILE, kept_token, running_server
from denizen.client import Client, Space
from denizen.errors import InvalidInput, ServerError, TokenRefused

if TYPE_CHECKING:
    from rich.table import Table

    from denizen.cli.local_access import LocalAccess
    from denizen.settings.loading import LoadedSettings
    from denizen.settings.shape import Settings

Url = Annotated[
    str | None,
    typer.Option(envvar="DENIZEN_URL", help="The server to use (default: the one on this machine)."),
]
Token = Annotated[str | None, typer.Option(envvar="DENIZEN_TOKEN", help="The access token for it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
SpaceName = Annotated[
    str, typer.Argument(metavar="SPACE", help="Its name or the beginning of its name, its id, or a handle.")
]

T = TypeVar("T")
AN_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@overload
def as_mention(named: str) -> str: ...


@overload
def as_mention(named: str | None) -> str | None: ...


def as_mention(named: str | None) -> str | None:
    """Returns a handle with its @, without which the API takes it for an id."""
    return named if named is None or named.startswith("@") or AN_ID.fullmatch(named.lower()) else f"@{named}"


AgentName = Annotated[
    str, typer.Argument(metavar="AGENT", callback=as_mention, help="The agent's handle, with or without @, or its id.")
]
PROBE_SECONDS: Final = 10.0
"""A missing server is noticed at once; a busy one may need a while to answer."""


@dataclass(frozen=True, slots=True)
class Api:
    """The HTTP API that a command uses, and how it prints results, as its options --url, --token and --json say."""

    context: typer.Context
    url: str | None
    token: str | None
    as_json: bool
    """Whether --json was given: print JSON, for programs."""

    def prints_json(self, value: object) -> bool:
        """Prints the value if JSON is wanted, and returns whether it is."""
        if self.as_json:
            print_json(value)
        return self.as_json

    def print_list(self, found: Sequence[T], table: Callable[[Sequence[T]], Table], if_empty: str) -> None:
        """Prints the list if JSON is wanted, otherwise a table of it or, if it is empty, the sentence, on stderr."""
        if self.prints_json(found):
            return
        if found:
            stdout().print(table(found))
        else:
            stderr().print(Text(if_empty, style="dim"))

    def tell(self, value: object, sentence: str) -> None:
        """Prints the value if JSON is wanted, otherwise the sentence, on stderr."""
        if not self.prints_json(value):
            stderr().print(Text(sentence, style="dim"), soft_wrap=True)

    def use(self, work: Callable[[Client], Awaitable[T]], *, models: bool = False, answering: bool = False) -> T:
        """Returns what `work` returns. Called once, first.

        Where no server runs: with `models`, models can be asked and presets and tools are known; with `answering`,
        panels are answered too.
        """
        loaded = begin(self.context)
        address, secret = named(loaded, self.url, self.token)

        async def done() -> T:
            async with open_api(loaded.settings, address, secret, models=models, answering=answering) as client:
                return await work(client)

        return asyncio.run(done())

    def use_access(self, work: Callable[[Client | LocalAccess], Awaitable[T]]) -> T:
        """The same for tokens, login links and keys: of the server that was named, otherwise of the database of this
        home.

        Who can open the database must come in even if no token is known any longer.
        """
        loaded = begin(self.context)
        address, secret = named(loaded, self.url, self.token)

        async def done() -> T:
            if address is not None:
                async with client_for(loaded.settings, address, secret) as client:
                    return await work(client)
            with importing("denizen.cli.local_access"):
                from denizen.cli.local_access import open_local_access

            async with open_local_access(loaded.settings) as local:
                return await work(local)

        return asyncio.run(done())


def with_api(command: Callable[..., None]) -> Callable[..., None]:
    """Returns the command with the options --json, --url and --token, which its first argument has, an `Api`."""
    _, *own = inspect.signature(command, eval_str=True).parameters.values()

    @wraps(command)
    def called(context: typer.Context, url: str | None, token: str | None, as_json: bool, **options: Any) -> None:
        command(Api(context, url, token, as_json), **options)

    by_name = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("context", by_name, annotation=typer.Context),
        *(each.replace(kind=by_name) for each in own),
        inspect.Parameter("as_json", by_name, default=False, annotation=AsJson),
        inspect.Parameter("url", by_name, default=None, annotation=Url),
        inspect.Parameter("token", by_name, default=None, annotation=Token),
    ]
    # Typer reads both.
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    called.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    return called


def named(loaded: LoadedSettings, url: str | None, token: str | None) -> tuple[str | None, str | None]:
    """Returns the server and the token, from an option, the environment or .env. Raises `InvalidInput` for an address
    without its scheme.
    """
    address = url or loaded.dotenv.get("DENIZEN_URL")
    if address and "://" not in address:
        raise InvalidInput(f"{address} is not the address of a server. Write http://{address} or https://{address}.")
    return address, token or loaded.dotenv.get("DENIZEN_TOKEN")


@asynccontextmanager
async def open_api(
    settings: Settings, url: str | None, token: str | None, *, models: bool = False, answering: bool = False
) -> AsyncGenerator[Client]:
    """Provides a client of the named server, of the one that runs on this home, or of the application in this
    process.
    """
    address = url or await find_server(settings, token)
    if address is not None:
        async with client_for(settings, address, token) as client:
            yield client
        return
    # Imported here: a client of a server needs none of it, and it takes seconds.
    with importing("denizen.cli.in_process"):
        from denizen.cli.in_process import open_application

    async with open_application(settings, models=models or answering, agents=answering) as application:
        yield application.client
        if answering:
            # What was answered here is reflected on here: a server beside would notice it only with the next turn.
            await application.runtime.panels_settled()


async def find_server(settings: Settings, token: str | None = None) -> str | None:
    """Returns the address of the server that runs on this home; None if there is none, or no token for it is known."""
    address = running_server(settings)
    if address is None or (token or kept_token(settings, address)) is None:
        return None
    return address if await is_denizen(address) else None


async def is_denizen(url: str) -> bool:
    """Whether a Denizen listens there, and not another program."""
    async with Client(url, "") as client:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                return (await client.health()).ok
        except (ServerError, TimeoutError):
            return False


def client_for(settings: Settings, url: str, token: str | None) -> Client:
    """Creates a client of that server, with the given token, or the one stored on this machine."""
    secret = token or kept_token(settings, url)
    if secret is None:
        raise TokenRefused(
            f"The server at {url} wants an access token, and there is none for it in {settings.home / TOKEN_FILE}. "
            "Give it with --token or DENIZEN_TOKEN."
        )
    return Client(url, secret)


async def find(client: Client, wanted: str) -> Space:
    """Returns the space: one of the caller's by name, any visible one by id."""
    try:
        return find_space(await client.spaces(), wanted, await client.me())
    except InvalidInput:
        if AN_ID.fullmatch(wanted.strip().lower()):
            return await client.space(wanted.strip().lower())
        raise
