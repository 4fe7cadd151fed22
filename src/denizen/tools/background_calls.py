"""Tool calls that go on while their cycle does not wait for them. What comes of them is an event in the agent's inbox.

The call is a row that says which instance carries it out. Should that instance die, another finds the row: it makes
the call again, or tells the agent that the outcome is unknown. Should whoever made the row not hear that it is there,
or the database not hear what came of the call, the instance finds its own row, and does what was left undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from typing import Final

import structlog

from denizen.errors import AlreadySettled, NotFound, explained
from denizen.ids import CallId, CycleId
from denizen.storage.database import Database
from denizen.tools import calls
from denizen.tools.calls import Call
from denizen.tools.tool import Occasion, OutsideTool, Toolbox

log_line = structlog.get_logger(__name__)

LATE_SECONDS: Final = 3_600
"""How long a call may go on after its cycle has stopped waiting for it."""


class BackgroundCalls:
    """The calls that this process is carrying out on the side."""

    def __init__(self) -> None:
        self._awaited: set[asyncio.Task[None]] = set()
        self._late: set[asyncio.Task[None]] = set()
        self._at_hand: set[CallId] = set()
        """The calls that are under way."""
        self._begun: set[CallId] = set()
        """Those that were ever begun here and are not known to be settled: also what was under way at a stop."""
        self._untold: dict[CallId, str] = {}
        """What came of calls, where the database did not hear it."""
        self._expecting: set[CycleId] = set()
        """The cycles whose calls may be rows already, and be started in a moment."""

    @property
    def busy(self) -> bool:
        """Whether something is under way whose result is counted on."""
        return bool(self._awaited)

    @contextmanager
    def expecting(self, cycle_id: CycleId) -> Generator[None]:
        """Inside, calls of this cycle are made known, and started as soon as that is certain."""
        self._expecting.add(cycle_id)
        try:
            yield
        finally:
            self._expecting.discard(cycle_id)

    def knows(self, call_id: CallId, cycle_id: CycleId) -> bool:
        """Whether the call is under way here, or about to be."""
        return call_id in self._at_hand or cycle_id in self._expecting

    def began(self, call_id: CallId) -> bool:
        """Whether the call was begun here, however far it came."""
        return call_id in self._begun

    def tell_again(self, db: Database) -> None:
        """What came of calls and was not heard by the database is told it again."""
        untold, self._untold = self._untold, {}
        for call_id, result in untold.items():
            self.start(db, call_id, _known(result))

    def start(self, db: Database, call_id: CallId, work: Awaitable[str], *, late: bool = False) -> None:
        """Carry this out; its result, or what went wrong, settles the call."""
        tasks = self._late if late else self._awaited
        self._at_hand.add(call_id)
        self._begun.add(call_id)
        task = asyncio.ensure_future(self._carry_out(db, call_id, work))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _carry_out(self, db: Database, call_id: CallId, work: Awaitable[str]) -> None:
        try:
            result = await _result_of(work)
            await self._tell(db, call_id, result)
        finally:
            self._at_hand.discard(call_id)

    async def _tell(self, db: Database, call_id: CallId, result: str) -> None:
        try:
            await db.write(calls.answer, call_id, result)
        except (AlreadySettled, NotFound) as error:
            log_line.warning("result of a call came to nothing", call=call_id, error=error.code)
        except Exception as error:  # noqa: BLE001  whatever it is, the work was done, and is not to be done again
            self._untold[call_id] = result
            log_line.warning("result of a call not stored yet", call=call_id, error=repr(error))
            return
        self._begun.discard(call_id)

    async def settled(self) -> None:
        """Everything whose result is counted on has come to its end."""
        while self._awaited:
            await asyncio.wait(self._awaited)

    async def stop(self) -> None:
        """Nothing goes on here any more; whoever comes next finds what was left."""
        tasks = [*self._awaited, *self._late]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def is_being_cancelled() -> bool:
    """Whether somebody wants this task to end. If not, a `CancelledError` is of something that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def again(call: Call, toolbox: Toolbox) -> str:
    """What the tool of a call answers that another process was carrying out when it died."""
    tool = toolbox.by_name.get(call.tool)
    if not isinstance(tool, OutsideTool):
        return f"There is no tool {call.tool!r} any more. Whether the call was carried out is unknown."
    occasion = Occasion(call.agent_id, call.cycle_id, call.step, call.position, call.id)
    return await tool.call(tool.check(call.arguments), occasion)


async def _result_of(work: Awaitable[str]) -> str:
    """What came of it, whatever that is; raises only if we are to stop."""
    try:
        async with asyncio.timeout(LATE_SECONDS):
            return await work
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
        return "Failed: it was cancelled."
    except Exception as error:  # noqa: BLE001  the model decides what to make of it
        return f"Failed: {explained(error)}"


async def _known(result: str) -> str:
    return result
