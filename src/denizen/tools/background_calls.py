"""Tool calls that continue in the background. Their result is an event in the agent's inbox.

The call is a row that says which instance carries it out. If that instance dies, another finds the row: it makes the
call again, or tells the agent that the outcome is unknown. If the caller does not hear that the row was stored, or the
database does not get the result, the instance finds its own row and completes the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from typing import Final

from denizen.errors import AlreadySettled, NotFound, explained
from denizen.ids import CallId, CycleId
from denizen.storage.database import Database
from denizen.telemetry.logs import get_logger
from denizen.tools import calls, results
from denizen.tools.calls import Call
from denizen.tools.results import Result, StoreFile
from denizen.tools.tool import CallIdentity, OutsideTool, Toolbox

log_line = get_logger(__name__)

LATE_SECONDS: Final = 3_600
"""How long a call may continue after its cycle has stopped waiting for it."""


class BackgroundCalls:
    """The background calls of this process."""

    def __init__(self) -> None:
        self._awaited: set[asyncio.Task[None]] = set()
        self._late: set[asyncio.Task[None]] = set()
        self._at_hand: set[CallId] = set()
        """The running calls."""
        self._begun: set[CallId] = set()
        """Calls that were begun here and are not known to be settled, including those that were running at a stop."""
        self._untold: dict[CallId, Result] = {}
        """Results of calls that could not be stored in the database."""
        self._expecting: set[CycleId] = set()
        """The cycles whose calls may be stored already, and are about to start."""

    @property
    def busy(self) -> bool:
        """Whether a call is running whose result is awaited."""
        return bool(self._awaited)

    @contextmanager
    def expecting(self, cycle_id: CycleId) -> Generator[None]:
        """While entered, calls of this cycle are stored, and started as soon as that is certain."""
        self._expecting.add(cycle_id)
        try:
            yield
        finally:
            self._expecting.discard(cycle_id)

    def knows(self, call_id: CallId, cycle_id: CycleId) -> bool:
        """Whether the call is running here, or about to be."""
        return call_id in self._at_hand or cycle_id in self._expecting

    def began(self, call_id: CallId) -> bool:
        """Whether the call was begun here, however far it got."""
        return call_id in self._begun

    def tell_again(self, db: Database) -> None:
        """Store results that could not be stored before."""
        untold, self._untold = self._untold, {}
        for call_id, result in untold.items():
            self.start(db, call_id, _known(result))

    def start(self, db: Database, call_id: CallId, work: Awaitable[Result], *, late: bool = False) -> None:
        """Run this call; its result or error settles it."""
        tasks = self._late if late else self._awaited
        self._at_hand.add(call_id)
        self._begun.add(call_id)
        task = asyncio.ensure_future(self._carry_out(db, call_id, work))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _carry_out(self, db: Database, call_id: CallId, work: Awaitable[Result]) -> None:
        try:
            result = await _result_of(work)
            await self._tell(db, call_id, result)
        finally:
            self._at_hand.discard(call_id)

    async def _tell(self, db: Database, call_id: CallId, result: Result) -> None:
        try:
            await db.write(calls.answer, call_id, result.text, files=result.files)
        except (AlreadySettled, NotFound) as error:
            log_line.warning("result of a call came to nothing", call=call_id, error=error.code)
        except Exception as error:  # noqa: BLE001  whatever it is, the work was done, and is not to be done again
            self._untold[call_id] = result
            log_line.warning("result of a call not stored yet", call=call_id, error=repr(error))
            return
        self._begun.discard(call_id)

    async def settled(self) -> None:
        """Wait until every call whose result is awaited has ended."""
        while self._awaited:
            await asyncio.wait(self._awaited)

    async def stop(self) -> None:
        """Stop all calls here; the next instance finds what was left."""
        tasks = [*self._awaited, *self._late]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def is_being_cancelled() -> bool:
    """Whether this task is being cancelled. If not, a `CancelledError` comes from something that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def again(call: Call, toolbox: Toolbox, store: StoreFile | None) -> Result:
    """Make a call again that another process was carrying out when it died. Returns the result."""
    tool = toolbox.by_name.get(call.tool)
    if not isinstance(tool, OutsideTool):
        return Result(f"There is no tool {call.tool!r} any more. Whether the call was carried out is unknown.")
    occasion = CallIdentity(call.agent_id, call.cycle_id, call.step, call.position, call.id)
    return await results.call(tool, tool.check(call.arguments), occasion, store)


async def _result_of(work: Awaitable[Result]) -> Result:
    """The result or error as text; raises only if we are to stop."""
    try:
        async with asyncio.timeout(LATE_SECONDS):
            return await work
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
        return Result("Failed: it was cancelled.")
    except Exception as error:  # noqa: BLE001  the model decides what to make of it
        return Result(f"Failed: {explained(error)}")


async def _known(result: Result) -> Result:
    return result
