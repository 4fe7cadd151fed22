"""A proxy in front of PostgreSQL that can go dark: it stops forwarding and closes nothing, like a dead network."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict


class DarkProxy:
    """Forwards connections on a port of loopback to a server's Unix socket, until it is told to go dark."""

    def __init__(self, database_url: str) -> None:
        parts = conninfo_to_dict(database_url)
        self._target = str(Path(str(parts["host"]), ".s.PGSQL.5432"))
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{port}/{parts['dbname']}"
        self._links: list[_Link] = []
        self._all_dark = False
        self._guard = threading.Lock()
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def darken(self, *, new_ones_too: bool) -> None:
        """No byte passes any connection that there is now; with `new_ones_too`, nor any later one."""
        with self._guard:
            self._all_dark = new_ones_too
            for link in self._links:
                link.dark.set()

    def lighten(self) -> None:
        """Later connections work. Those that are dark stay so."""
        with self._guard:
            self._all_dark = False

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join()
        for link in self._links:
            link.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._target)
            with self._guard:
                self._links.append(_Link(near, far, dark=self._all_dark))


class _Link:
    """One connection: a thread for each direction."""

    def __init__(self, near: socket.socket, far: socket.socket, *, dark: bool) -> None:
        self.dark = threading.Event()
        if dark:
            self.dark.set()
        self._ends = (near, far)
        self._threads = [
            threading.Thread(target=self._forward, args=ends, daemon=True) for ends in ((near, far), (far, near))
        ]
        for thread in self._threads:
            thread.start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if not self.dark.is_set():
                    target.sendall(data)
        if not self.dark.is_set():
            self._shut()

    def _shut(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._shut()
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()


@contextmanager
def dark_proxy(database_url: str) -> Iterator[DarkProxy]:
    """Inside, the database can be reached through the proxy."""
    proxy = DarkProxy(database_url)
    try:
        yield proxy
    finally:
        proxy.close()
