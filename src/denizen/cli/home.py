"""Opens the server's runtime from settings: its folder, its database, and its owner."""

from __future__ import annotations

import getpass
import os
import socket
import stat
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from denizen.errors import SettingsError, StorageError
from denizen.settings.shape import Settings, TelemetrySettings

if TYPE_CHECKING:
    from denizen.agents.restrictions import HostAccess
    from denizen.app import Runtime
    from denizen.cycles.budgets import BudgetSettings
    from denizen.cycles.server_models import ServerModels
    from denizen.first_start import World
    from denizen.memory.settings import MemoryOptions
    from denizen.models.prices import Price
    from denizen.telemetry.telemetry import Telemetry

CONNECT_SECONDS: Final = 2
LOCK_FOLDER: Final = "instances"
"""In the home folder: a lock file for each process that runs agents."""
ARCHIVE_FOLDER: Final = "archive"
"""In the home folder: messages that were removed because they had expired, for spaces that archive them."""
TOKEN_FILE: Final = "token"  # noqa: S105  the name of the file
"""In the home folder: the owner's access token, which `denizen up` stores there for the command line of this
machine.
"""

ADDRESS_FILE: Final = "address"
"""In the home folder while `denizen up` runs: its address, which may have another port than the configured one."""


def server_url(settings: Settings) -> str:
    """Returns the address of this home's server: as the running one says, otherwise from the settings."""
    return _certified_url(settings) or _running_address(settings) or settings.address


def running_server(settings: Settings) -> str | None:
    """Returns the address of the server that runs on this home; None if none runs."""
    address = _running_address(settings)
    return None if address is None else _certified_url(settings) or address


def _certified_url(settings: Settings) -> str | None:
    # A certificate is for the public name.
    return None if settings.tls.certificate is None else settings.public_url


def _running_address(settings: Settings) -> str | None:
    """Returns the address that the running server has stored; None if nothing answers there: it may have been
    killed.
    """
    try:
        address = (settings.home / ADDRESS_FILE).read_text().strip()
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=CONNECT_SECONDS):
            return address
    except (OSError, ValueError):
        return None


@contextmanager
def announced_address(home: Path, address: str) -> Generator[None]:
    """Stores the address inside the block, so that other commands of this home find the server."""
    path = home / ADDRESS_FILE
    # Never half written: a command that reads it meanwhile would take the server for stopped.
    written = path.with_suffix(f".{os.getpid()}")
    written.write_text(address + "\n")
    written.replace(path)
    try:
        yield
    finally:
        with suppress(OSError):
            # Another server may have started in this folder since.
            if path.read_text().strip() == address:
                path.unlink()


def kept_token(settings: Settings, address: str) -> str | None:
    """Returns the owner's access token, which `denizen up` has stored in the home folder: for the server here, and sent
    to no other.
    """
    from denizen.settings.loopback import is_loopback

    own = [each.rstrip("/") for each in (settings.address, server_url(settings), settings.public_url) if each]
    if not is_loopback(urlsplit(address).hostname or "") and address.rstrip("/") not in own:
        return None
    try:
        return (settings.home / TOKEN_FILE).read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


@dataclass(frozen=True, slots=True)
class OpenedHome:
    """An open runtime, and the world in it."""

    runtime: Runtime
    world: World


@asynccontextmanager
async def open_home(settings: Settings) -> AsyncGenerator[OpenedHome]:
    """Opens the runtime, with a world in it, inside the block; agents do not run yet."""
    from denizen.first_start import set_up_home

    make_home(settings)
    telemetry = telemetry_of(settings.telemetry)
    runtime = await runtime_of(settings, telemetry)
    async with aclosing(telemetry), runtime:
        yield OpenedHome(runtime, await set_up_home(runtime, owner_name()))


async def runtime_of(settings: Settings, telemetry: Telemetry | None = None) -> Runtime:
    """Creates the runtime from the settings, not open yet."""
    # Imported here: talking to a running server needs none of it, and it takes a second.
    from denizen.agents.pace import Pace
    from denizen.app import Runtime
    from denizen.files.storing import FileLimits
    from denizen.models.discovery import choose_model
    from denizen.tools.loading import load_functions, load_tools

    functions = {
        kind: load_functions(f"functions.{kind}", places) for kind, places in settings.functions.model_dump().items()
    }
    choice = await choose_model(settings.model, os.environ)
    runtime = Runtime(
        settings.database_url,
        redis_url=settings.redis_url,
        default_model=settings.model,
        found_model=choice,
        embedder=settings.embedder,
        tools=load_tools(settings.tools),
        **functions,
        prices=prices_of(settings),
        contexts=settings.contexts,
        pace=Pace(**settings.agents.model_dump()),
        public_url=settings.public_url or settings.address,
        telemetry=telemetry,
        memory=memory_options(settings),
        server_budget=server_budget(settings),
        lock_folder=settings.home / LOCK_FOLDER,
        archive_folder=settings.home / ARCHIVE_FOLDER,
        host_access=host_access(settings),
        file_limits=FileLimits(**settings.files.model_dump()),
        **secret_options(settings),
        **profile_options(settings),
    )
    if choice.ollama_url is not None:
        runtime.model_catalog.ollama_url = choice.ollama_url
    return runtime


@asynccontextmanager
async def open_records(settings: Settings) -> AsyncGenerator[tuple[Runtime, World]]:
    """Opens the database for reading and writing inside the block. No model is looked for, and no agents run."""
    from denizen.app import Runtime
    from denizen.cycles.server_models import FOUND_NOTHING
    from denizen.files.storing import FileLimits
    from denizen.first_start import set_up_home

    make_home(settings)
    public_url = settings.public_url or server_url(settings)
    async with Runtime(
        settings.database_url,
        public_url=public_url,
        default_model=settings.model,
        found_model=FOUND_NOTHING,
        prices=prices_of(settings),
        contexts=settings.contexts,
        host_access=host_access(settings),
        file_limits=FileLimits(**settings.files.model_dump()),
        presets=settings.profiles.presets,
        prompts=settings.profiles.prompts,
        **secret_options(settings),
    ) as runtime:
        yield runtime, await set_up_home(runtime, owner_name())


async def server_models_of(settings: Settings) -> ServerModels:
    """Returns the default model of this machine, as `denizen up` would choose it, and the addresses of its model
    servers.
    """
    from denizen.app import Runtime
    from denizen.cycles.server_models import ServerModels
    from denizen.models.catalog import Models
    from denizen.models.discovery import choose_model

    choice = await choose_model(settings.model, os.environ)
    known = ServerModels(Models(), settings.model, choice)
    known.models.ollama_url = choice.ollama_url
    # A database that cannot be read is reported elsewhere: models are available without it.
    with suppress(StorageError):
        if await has_database(settings):
            async with Runtime(settings.database_url, default_model=settings.model, found_model=choice) as runtime:
                known.apply(runtime.server_models.chosen)
    return known


async def has_database(settings: Settings) -> bool:
    """Whether a database of this version exists."""
    from denizen.storage.migrating import HEAD
    from denizen.storage.opening import revision

    return settings.database_url not in ("sqlite://", "sqlite:///:memory:") and (
        await revision(settings.database_url) == HEAD
    )


def prices_of(settings: Settings) -> dict[str, Price]:
    """Returns the prices of models from the settings."""
    from denizen.models.prices import Price

    return {name: Price(**each.model_dump()) for name, each in settings.prices.items()}


def memory_options(settings: Settings) -> MemoryOptions | None:
    """Returns the settings of summaries and long-term memory; None if both are off."""
    from denizen.memory.settings import MemoryOptions, Switches
    from denizen.profiles.files import PresetFile
    from denizen.profiles.library import shipped_file

    memory = settings.memory
    if not memory.enabled:
        return None
    given = memory.model_dump(exclude={"enabled", "sink", "retriever"}, exclude_none=True)
    return MemoryOptions(
        presets=PresetFile(settings.profiles.presets, shipped_file).load,
        switches=Switches(**{name.removeprefix("compaction_"): value for name, value in given.items()}),
        sink=memory.sink,
        retriever=memory.retriever,
        prompts=settings.profiles.prompts,
    )


def host_access(settings: Settings) -> HostAccess:
    """Returns what organizations other than the first may use of this machine."""
    from denizen.agents.restrictions import HostAccess

    return HostAccess(**settings.organizations.model_dump())


def server_budget(settings: Settings) -> BudgetSettings | None:
    """Returns the daily budget of all agents and panels of the server; None if there is no limit."""
    from denizen.cycles.budgets import BudgetSettings

    given = {name: value for name, value in settings.budget.model_dump().items() if value}
    return BudgetSettings(**given) if given else None


def telemetry_of(settings: TelemetrySettings) -> Telemetry:
    """Creates the metrics and traces. Raises `InvalidInput` if traces are wanted and cannot be made."""
    from denizen import __version__
    from denizen.telemetry.metrics import Metrics
    from denizen.telemetry.telemetry import Telemetry
    from denizen.telemetry.traces import Tracer

    endpoint = settings.otlp_endpoint
    tracer = None if endpoint is None else Tracer(endpoint, version=__version__)
    return Telemetry(Metrics(), tracer, content=settings.content, open_metrics=settings.open_metrics)


def secret_options(settings: Settings) -> dict[str, Any]:
    """Returns the arguments of a runtime for the key of the secrets, and for those that the environment shares."""
    from denizen.access.secrets import shared_in
    from denizen.access.vault import KEY_FILE

    return {
        "secret_key": None if settings.secret_key is None else settings.secret_key.get_secret_value(),
        "secret_key_file": settings.home / KEY_FILE,
        "shared_secrets": shared_in(os.environ),
    }


def profile_options(settings: Settings) -> dict[str, Any]:
    """Returns the arguments of a runtime for prompt profiles and reflection."""
    from denizen.reflection.sentiment import load_classifier

    place = settings.reflection.classifier
    return {
        "presets": settings.profiles.presets,
        "prompts": settings.profiles.prompts,
        "classifier": None if place is None else load_classifier(place),
    }


def make_home(settings: Settings) -> None:
    """Creates the folder for our data, writable. It and the database's files are for their owner only."""
    home = settings.home
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = home / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise SettingsError(
            f"Denizen cannot write to its folder {home} ({error.strerror}). "
            "Make it writable, or choose another with DENIZEN_HOME."
        ) from error
    for path in open_to_others(settings):
        # A file of another user stays as it is; `denizen doctor` reports it.
        with suppress(PermissionError):
            path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)


def open_to_others(settings: Settings) -> list[Path]:
    """Returns what others on this machine may read or write: the folder, and the files of the token, the key and the
    database.
    """
    from denizen.access.vault import KEY_FILE

    home = settings.home
    places = [home, home / TOKEN_FILE, home / KEY_FILE, *_database_files(settings.database_url)]
    # Users who keep everything in their own home folder decide about its mode themselves.
    return [each for each in places if each != Path.home() and _others_may(each)]


def _database_files(url: str) -> list[Path]:
    scheme, _, rest = url.partition("://")
    name = rest.removeprefix("/")
    if not scheme.startswith("sqlite") or name in ("", ":memory:"):
        return []
    return [Path(f"{name}{suffix}") for suffix in ("", "-wal", "-shm")]


def _others_may(path: Path) -> bool:
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except OSError:
        return False


def owner_name() -> str:
    """Returns a name for the first owner."""
    try:
        return getpass.getuser().replace(".", " ").title()
    except (KeyError, OSError):
        return "Owner"
