"""Work after a turn, in the background: reflection on the turns of each agent or panel in order, several agents and
panels at a time; and chapters of agents' histories.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from denizen.errors import StorageError
from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)

AT_ONCE: Final = 8
"""How many agents or panels are reflected on at the same time."""

Id = TypeVar("Id", bound=str)


class Afterthoughts(Generic[Id]):
    """The background reflection of this process. Cancelled, it leaves everything as it was."""

    def __init__(self, reflect_on_next: Callable[[Id], Awaitable[bool]], kind: str = "reflection") -> None:
        """`reflect_on_next` reflects on the next turn of an agent, or of a panel; False if there is none. `kind` is the
        word for such work in the log.
        """
        self._reflect_on_next = reflect_on_next
        self._kind = kind
        self._waiting: dict[Id, None] = {}
        self._tasks: dict[Id, asyncio.Task[None]] = {}
        self._put_off: set[Id] = set()
        self._failed: set[Id] = set()
        """Those whose reflection failed with a defect: retried, and paid for, only when something new happens."""
        self._stopped = False

    @property
    def busy(self) -> bool:
        return bool(self._tasks or self._waiting)

    def hint(self, whose: Id) -> None:
        """Notes that there may be something to reflect on. Returns at once."""
        self._waiting[whose] = None
        self._start()

    def found(self, whose: Id) -> None:
        """Notes that there is something to reflect on, perhaps not new. Returns at once."""
        if whose not in self._failed:
            self.hint(whose)

    def try_again(self) -> None:
        """Retries the reflections that failed. Returns at once."""
        for whose in self._put_off.copy():
            self.hint(whose)

    async def settled(self) -> None:
        """Returns when every turn so far has been reflected on."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def stop(self) -> None:
        """Stops reflecting; the next process finds what is left."""
        self._stopped = True
        self._waiting.clear()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _start(self) -> None:
        for whose in list(self._waiting):
            if self._stopped or len(self._tasks) >= AT_ONCE:
                return
            if whose in self._tasks:
                continue  # Its next turn starts when this one has finished.
            del self._waiting[whose]
            task = asyncio.create_task(self._reflect(whose), name=f"{self._kind} of {whose}")
            self._tasks[whose] = task
            task.add_done_callback(lambda _, ended=whose: self._ended(ended))

    def _ended(self, whose: Id) -> None:
        del self._tasks[whose]
        self._start()

    async def _reflect(self, whose: Id) -> None:
        self._put_off.discard(whose)
        self._failed.discard(whose)
        try:
            while await self._reflect_on_next(whose):
                pass
        except Exception as error:  # noqa: BLE001  the loop's boundary: what was lived stays, and is found later
            if isinstance(error, StorageError):
                self._put_off.add(whose)
            else:
                self._failed.add(whose)
            log_line.warning(f"{self._kind} put off", of=whose, error=repr(error))
