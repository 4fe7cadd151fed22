"""Connections to PostgreSQL that one test hands on to the next.

The server starts a process for each connection, which reads the catalogue and plans every statement anew. That took
twice as long as the test itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, ClassVar

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from denizen.storage import postgresql

_AS_NEW = "RESET ALL; SELECT pg_advisory_unlock_all()"


class ReusedConnection(postgresql._Connection):
    """A connection that is kept when it is closed between two transactions, and given to whoever connects next."""

    idle: ClassVar[list[ReusedConnection]] = []
    _taking: ClassVar[Lock] = Lock()
    _address = ""

    @classmethod
    def connect(cls, conninfo: str = "", **settings: Any) -> Any:
        while (each := cls._take(conninfo)) is not None:
            try:
                each.execute(_AS_NEW, prepare=False)
                return each
            except psycopg.OperationalError:  # a test had the server end it
                each.end()
        made = super().connect(conninfo, **settings)
        made._address = conninfo
        return made

    @classmethod
    def _take(cls, conninfo: str) -> ReusedConnection | None:
        # Several threads of a pool connect at the same time.
        with cls._taking:
            found = next((each for each in cls.idle if each._address == conninfo), None)
            if found is not None:
                cls.idle.remove(found)
            return found

    def close(self) -> None:
        if self.info.transaction_status is TransactionStatus.IDLE:
            self.patience = None
            self.idle.append(self)
        else:
            self.end()

    def end(self) -> None:
        super().close()


@contextmanager
def reused_connections() -> Iterator[None]:
    """Inside, our connections to PostgreSQL are reused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgresql, "_Connection", ReusedConnection)
        yield


def idle_processes() -> list[int]:
    """The server's processes that serve connections nobody uses now."""
    return [each.info.backend_pid for each in ReusedConnection.idle]


def end_idle_connections() -> None:
    while ReusedConnection.idle:
        ReusedConnection.idle.pop().end()
