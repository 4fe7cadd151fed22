"""`denizen doctor`: checks everything that Denizen needs, and says how to fix what is wrong."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from denizen import __version__
from denizen.access.vault import KEY_FILE
from denizen.amounts import human_size
from denizen.cli.console import print_json, stdout
from denizen.cli.findings import LIMIT_SECONDS, Finding, Status, guarded, in_thread, is_there, may_write
from denizen.cli.home import open_to_others, server_models_of, server_url
from denizen.errors import InvalidInput, ModelError, SettingsError
from denizen.masking import masked
from denizen.settings.loading import LoadedSettings, export_dotenv, load
from denizen.settings.shape import Settings

if TYPE_CHECKING:
    from denizen.cycles.server_models import ServerModels

OLDEST_PYTHON: Final = (3, 11)
LITTLE_ROOM: Final = 1_000_000_000
NO_ROOM: Final = 50_000_000
ANSWER_SECONDS: Final = 3.0
AGENTS_SECONDS: Final = 30.0
PROBE_SECONDS: Final = 150.0
"""The time limits of checking all agents, without and with asking their models."""

_MARKS: Final[dict[Status, tuple[str, str]]] = {"ok": ("✓", "green"), "note": ("!", "yellow"), "problem": ("✗", "red")}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Also test each agent's model, which costs a few tokens.")
    ] = False,
) -> None:
    """Check the installation, and say how to fix what is wrong.

    Checks every agent: whether it can run, how long people have waited for it, what it has set aside. Nothing
    is created or changed. The exit status is 1 if a person must act.
    """
    findings = [_python(), *_examine_settings(probe=probe)]
    well = all(each.status != "problem" for each in findings)
    if as_json:
        print_json({"ok": well, "version": __version__, "checks": [asdict(each) for each in findings]})
    else:
        _show(findings)
    if not well:
        raise typer.Exit(1)


def _examine_settings(*, probe: bool) -> list[Finding]:
    try:
        loaded = load()
    except SettingsError as error:
        findings = [Finding("Settings", "problem", masked(problem)) for problem in error.problems]
        return [*findings, Finding("Settings", "note", "The other checks need the settings, so they were left out.")]
    export_dotenv(loaded)
    _import_what_checks_need()
    return [_settings(loaded), *asyncio.run(examine(loaded.settings, probe=probe))]


def _import_what_checks_need() -> None:
    """Before the time limits of the checks start: on a slow machine this takes seconds, and it would block the event
    loop.
    """
    for module in (
        "denizen.cli.database_check",
        "denizen.cli.agents_check",
        "denizen.checker",
        "denizen.app",
        "denizen.models.discovery",
        "denizen.server.gate",
        "redis.asyncio",
    ):
        try:
            import_module(module)
        except Exception:  # noqa: BLE001, S110
            pass  # The check that needs it fails in the same way, and reports it.


async def examine(settings: Settings, *, probe: bool = False) -> list[Finding]:
    """Returns the findings of all checks of these settings, in a fixed order. The checks run concurrently."""
    checks = {
        "Home": lambda: in_thread(lambda: _home(settings)),
        "Database": lambda: in_thread(lambda: _database(settings)),
        "Redis": lambda: _redis(settings.redis_url),
        "Model": lambda: _model(settings),
        "Recall": lambda: in_thread(lambda: _recall(settings.embedder)),
        "Server": lambda: _server(settings),
        "Rows": lambda: _rows(settings),
        "Thinking": lambda: _thinking(settings, probe=probe),
    }
    limits = {"Thinking": PROBE_SECONDS if probe else AGENTS_SECONDS, "Model": None, "Rows": AGENTS_SECONDS}
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(guarded(name, check, limits.get(name, LIMIT_SECONDS)), name=name)
            for name, check in checks.items()
        ]
    return [finding for task in running for finding in task.result()]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Finding("Python", "ok", f"{version} at {sys.executable}.")
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return Finding("Python", "problem", f"{version} is too old.", f"Install Python {oldest} or newer.")


def _settings(loaded: LoadedSettings) -> Finding:
    changed = [name for name, origin in loaded.origins.items() if origin != "default"]
    files = ", ".join(str(source.path) for source in loaded.sources if source.used)
    said = f"{len(changed)} set ({', '.join(changed)})" if changed else "All defaults"
    return Finding("Settings", "ok", f"{said}; {f'read from {files}' if files else 'no files'}.")


def _home(settings: Settings) -> list[Finding]:
    home = settings.home
    if is_there(home) and not home.is_dir():
        return [Finding("Home", "problem", f"{home} is not a folder.", "Remove it, or set DENIZEN_HOME to a folder.")]
    nearest = next(each for each in (home, *home.parents) if is_there(each))
    if not may_write(nearest):
        said = f"{home} may not be written to." if nearest == home else f"{home} cannot be made in {nearest}."
        return [Finding("Home", "problem", said, "Give this user the right to, or set DENIZEN_HOME to another folder.")]
    if nearest == home:
        found = Finding("Home", "ok", f"{home}, writable.")
    else:
        found = Finding("Home", "note", f"{home} is not there yet.", "Nothing to do: the first `denizen up` makes it.")
    return [found, *_key_file(home / KEY_FILE), *_open_to_others(settings), _room(nearest)]


def _key_file(path: Path) -> list[Finding]:
    """Whether only its owner can read the key of the secrets; nothing if there is no key file."""
    if not is_there(path):
        return []
    if path.stat().st_mode & 0o077:
        return [Finding("Secrets", "problem", f"Others on this machine may read {path}.", f"Run `chmod 600 {path}`.")]
    return [Finding("Secrets", "ok", f"Sealed with the key in {path}.")]


def _open_to_others(settings: Settings) -> list[Finding]:
    """Whether only their owner can read the folder and the other files; nothing if so."""
    found = [str(each) for each in open_to_others(settings) if each.name != KEY_FILE]
    if not found:
        return []
    said = f"Others on this machine may read {', '.join(found)}."
    return [Finding("Files", "problem", said, f"Run `chmod go-rwx {' '.join(found)}`; `denizen up` does it, too.")]


def _room(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    said = f"{human_size(free)} free."
    if free < NO_ROOM:
        return Finding("Disk", "problem", said, "Make room: without it nothing that is said can be kept.")
    if free < LITTLE_ROOM:
        return Finding("Disk", "note", said, "Make room before it is full.")
    return Finding("Disk", "ok", said)


def _database(settings: Settings) -> list[Finding]:
    from denizen.cli.database_check import examine as examine_database
    from denizen.models.embedders import known_as

    return examine_database(settings.database_url, known_as(settings.embedder))


def _recall(name: str) -> list[Finding]:
    """Whether agents can recall by meaning as configured; the check of the database says how far."""
    from denizen.models.embedders import check_installed

    try:
        check_installed(name)
    except InvalidInput as error:
        return [Finding("Recall", "problem", str(error), "Or set DENIZEN_EMBEDDER=none: agents recall by words then.")]
    return []


async def _redis(url: str | None) -> list[Finding]:
    if url is None:
        return []
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    shown = masked(url)
    try:
        client: Any = Redis.from_url(url, socket_timeout=ANSWER_SECONDS, socket_connect_timeout=ANSWER_SECONDS)  # pyright: ignore[reportUnknownMemberType]
        async with client:
            about = await client.info("server")
    except (RedisError, OSError, ValueError) as error:
        advice = "Start it, or correct REDIS_URL. Without it, several processes notice each other's work late."
        return [Finding("Redis", "problem", f"{shown} does not answer: {masked(str(error)).rstrip('.')}.", advice)]
    name = "Valkey" if about.get("server_name") == "valkey" else "Redis"
    version = about.get("valkey_version") or about.get("redis_version")
    return [Finding("Redis", "ok", f"{name} {version} at {shown}.")]


async def _model(settings: Settings) -> list[Finding]:
    async with asyncio.timeout(LIMIT_SECONDS):
        known = await server_models_of(settings)
    # Without a limit: it waits for nobody, but imports the library of the provider, which takes long on a busy machine.
    trouble = await in_thread(lambda: _trouble_with(known))
    if trouble is not None:
        return [Finding("Model", "problem", trouble)]
    if known.source == "demo":
        advice = (
            "Connect one under Administration › Models in the browser, set OPENAI_API_KEY or ANTHROPIC_API_KEY, "
            "or start Ollama."
        )
        return [Finding("Model", "note", known.reason, advice)]
    return [Finding("Model", "ok", known.reason)]


def _trouble_with(known: ServerModels) -> str | None:
    """Returns why the model cannot be used, as far as known without a request: a missing key, a wrong name."""
    try:
        known.models.resolve(known.default)
    except ModelError as error:
        # A chosen model has its key in the database: whether agents can use it is another check.
        return None if known.source == "chosen" else masked(str(error))
    return None


async def _rows(settings: Settings) -> list[Finding]:
    from denizen.cli.rows_check import examine as examine_rows

    return await examine_rows(settings)


async def _thinking(settings: Settings, *, probe: bool) -> list[Finding]:
    from denizen.cli.agents_check import examine as examine_agents

    return await examine_agents(settings, probe=probe)


async def _server(settings: Settings) -> list[Finding]:
    import httpx2

    from denizen.server.reach import reach_of

    try:
        reach_of(settings)
    except SettingsError as error:
        return [Finding("Server", "problem", "It will not start.", str(error))]
    url = server_url(settings)
    if settings.port == 0 and url == settings.address:
        return [Finding("Server", "ok", "It takes any free port, and none runs.")]
    try:
        tls = not url.startswith("http://")  # loading certificates takes longer than the answer
        async with httpx2.AsyncClient(timeout=ANSWER_SECONDS, trust_env=False, verify=tls) as client:
            answer = await client.get(f"{url}/healthz")
    except httpx2.ConnectError:
        return [Finding("Server", "note", f"None answers on {url}.", "Start it with `denizen up`.")]
    except httpx2.HTTPError as error:
        return [_stranger(url, f"it does not speak HTTP as a server does ({type(error).__name__})")]
    version = _version_in(answer)
    if version is None:
        return [_stranger(url, f"GET /healthz gives status {answer.status_code}")]
    said = f"Denizen {version} answers on {url}"
    if answer.status_code != 200:
        return [Finding("Server", "problem", f"{said}, and is not well: status {answer.status_code}.")]
    if version != __version__:
        return [Finding("Server", "note", f"{said}; this is {__version__}.", "Restart it to run the same version.")]
    return [Finding("Server", "ok", f"{said}.")]


def _version_in(answer: Any) -> str | None:
    """Returns the version of our own server; None if it is not ours."""
    try:
        body = answer.json()
    except ValueError:
        return None
    version = body.get("version") if isinstance(body, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return version if isinstance(version, str) else None


def _stranger(url: str, how: str) -> Finding:
    said = f"Another program answers on {url}: {how}."
    return Finding("Server", "problem", said, "Stop it, or set DENIZEN_PORT to a free port.")


def _show(findings: Sequence[Finding]) -> None:
    console = stdout()
    width = max(len(each.check) for each in findings)
    for each in findings:
        mark, style = _MARKS[each.status]
        console.print(
            Text.assemble((mark, style), " ", (f"{each.check:{width}}", "bold"), f"  {each.said}"), soft_wrap=True
        )
        if each.advice:
            console.print(Text(f"{'':{width + 4}}→ {each.advice}", style=style), soft_wrap=True)
