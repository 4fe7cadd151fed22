"""Logging: one pipeline for our own lines and those of libraries, to stderr, without secrets.

Entry points call `configure_logging` once. In other programs, which use Denizen as a library, its lines go where the
program's own logging sends them.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Final, Literal, TextIO, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from denizen.masking import MASK, is_secret_name, masked

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["console", "json"]

CHATTY: Final = ("alembic", "asyncio", "httpcore", "httpcore2", "httpx", "httpx2", "mcp", "openai", "anthropic")
"""Libraries that log every request or step at INFO. Shown from WARNING on, or from INFO on at level debug."""

_DEEPEST: Final = 6
"""How deep nested values are searched for secrets."""


def configure_logging(level: Level = "info", form: Format = "console", *, stream: TextIO | None = None) -> None:
    """Sends every log line of this process to `stream` (stderr) in that format. A second call replaces the first."""
    target = stream or sys.stderr
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_shared(),
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                # Plain text: a pretty traceback would show local variables, and with them secrets.
                structlog.processors.format_exc_info,
                mask_secrets,
                _renderer(form, target),
            ],
        )
    )
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each.formatter, structlog.stdlib.ProcessorFormatter)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.INFO if level == "debug" else logging.WARNING)
    structlog.configure(
        processors=[*_shared(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def get_logger(name: str) -> FilteringBoundLogger:
    """Returns the logger of a module.

    Where structlog is configured, by `configure_logging` or by the program, its lines go through that. Otherwise they
    are those of the logger of this name in `logging`, which shows warnings and errors only, unless the program wants
    more: structlog would print every line on stdout.
    """
    return cast("FilteringBoundLogger", _Logger(name))


class _Logger:
    """A logger that follows what is configured at the time of each line."""

    def __init__(self, name: str) -> None:
        self._configured = structlog.get_logger(name)
        self._of_logging = structlog.wrap_logger(
            logging.getLogger(name),
            wrapper_class=structlog.stdlib.BoundLogger,
            processors=[
                structlog.stdlib.filter_by_level,
                structlog.contextvars.merge_contextvars,
                _as_arguments_of_logging,
            ],
        )

    def __getattr__(self, method: str) -> Any:
        return getattr(self._configured if structlog.is_configured() else self._of_logging, method)


def _as_arguments_of_logging(
    logger: WrappedLogger, method: str, event: EventDict
) -> tuple[tuple[str], dict[str, object]]:
    """The phrase with its fields, as a message of `logging`, which adds a traceback itself."""
    failure = event.pop("exc_info", None)
    fields = mask_secrets(logger, method, event)
    phrase = fields.pop("event")
    told = " ".join([phrase, *(f"{name}={value!r}" for name, value in fields.items())])
    return (told,), {"exc_info": failure}


def mask_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Masks everything in the line that looks like a secret. None should be there; this is the last safeguard."""
    del logger, method
    return {name: _clean(name, value, _DEEPEST) for name, value in event.items()}


def _shared() -> list[Processor]:
    """The processors for every line, ours or a library's, before it is rendered."""
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]


def _renderer(form: Format, target: TextIO) -> Processor:
    if form == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=False, default=str)
    return structlog.dev.ConsoleRenderer(colors=target.isatty() and not os.environ.get("NO_COLOR"), pad_event_to=32)


def _clean(name: str, value: Any, depth: int) -> Any:
    if value is not None and is_secret_name(name):
        return MASK
    match value:
        case str():
            return masked(value)
        case bool() | int() | float() | None:
            return value
        case Mapping() if depth:
            pairs = cast("MutableMapping[Any, Any]", value).items()
            return {key: _clean(str(key), each, depth - 1) for key, each in pairs}
        case list() | tuple() | set() | frozenset() if depth:
            return [_clean("", each, depth - 1) for each in cast("list[Any]", value)]
        case _:
            # Other values will be rendered as `str`, so that is what is masked.
            return masked(str(value))
