"""Calls of tools that work outside the database: made while the cycle waits, or continued in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from denizen import failpoints
from denizen.bus.streams import AgentStatus, agent_topic
from denizen.consciousness.lease import Lease
from denizen.cycles import calling
from denizen.cycles.calling import FinishedCall, ResponseStep
from denizen.cycles.deps import CycleDeps
from denizen.cycles.watching import Watch
from denizen.errors import explained
from denizen.ids import CallId, CycleId
from denizen.telemetry.logs import get_logger
from denizen.tools import argument_parsing, results
from denizen.tools.results import Result
from denizen.tools.tool import CallIdentity, OutsideTool

log_line = get_logger(__name__)

TOOL_CALLED = failpoints.declare("tool.called")


class OutsideCalls:
    """The outside calls of a running cycle."""

    def __init__(self, deps: CycleDeps, lease: Lease, cycle_id: CycleId, watch: Watch) -> None:
        self._with = deps
        self._lease = lease
        self._cycle_id = cycle_id
        self._watch = watch
        self._late: dict[tuple[int, int], asyncio.Future[Result]] = {}
        """Calls that were no longer waited for, by step and position."""

    def cancel(self) -> None:
        """Cancel calls that were no longer waited for and that nobody took over."""
        for work in self._late.values():
            work.cancel()

    def _tell_doing(self, tools: Sequence[str]) -> None:
        """Show watchers which tools the agent is using. A hint: it says nothing about what is stored."""
        agent_id, epoch = self._lease.agent_id, self._lease.epoch
        status = AgentStatus(agent_id, "alive", epoch, ", ".join(tools) or None)
        self._with.bus.publish(agent_topic(agent_id), status.to_payload())

    async def call_all(self, step: ResponseStep, positions: Sequence[int]) -> dict[int, FinishedCall]:
        names = [step.calls[at].tool_name for at in positions]
        self._tell_doing(names)
        async with asyncio.TaskGroup() as tasks:
            running = {
                at: tasks.create_task(self.call(step, at), name=f"tool {name}")
                for at, name in zip(positions, names, strict=True)
            }
        self._tell_doing([])
        return {at: task.result() for at, task in running.items()}

    async def call(self, step: ResponseStep, at: int) -> FinishedCall:
        """Call an outside tool; its errors are given to the model, never raised.

        A call that takes too long continues in the background: its later result comes in an event.
        """
        tool = self._with.toolbox.by_name[step.calls[at].tool_name]
        assert isinstance(tool, OutsideTool)
        work = asyncio.ensure_future(self._work(step, at, tool))
        try:
            done, _ = await asyncio.wait({work}, timeout=tool.seconds)
        except asyncio.CancelledError:
            work.cancel()
            raise
        if not done:
            self._late[step.number, at] = work
            told = f"{tool.name} has not answered within {tool.seconds:g} seconds. Whether it did its work is unknown."
            return FinishedCall(f"{told} If it answers later, the result will reach you as an event.", late=True)
        if work.cancelled():  # not by us: we would not be here
            return FinishedCall(f"{tool.name} failed: it was cancelled.", failed=True)
        try:
            result = work.result()
            finished = FinishedCall(result.text, files=result.files)
        except Exception as error:  # noqa: BLE001  the model decides what to make of it
            log_line.info("tool failed", tool=tool.name, error=repr(error))
            return FinishedCall(f"{tool.name} failed: {explained(error)}", failed=True)
        failpoints.reach(TOOL_CALLED)
        return finished

    async def _work(self, step: ResponseStep, at: int, tool: OutsideTool) -> Result:
        agent_id, cycle_id = self._lease.agent_id, self._cycle_id
        occasion = CallIdentity(agent_id, cycle_id, step.number, at, calling.call_id(cycle_id, step, at))
        with self._watch.outside(step.calls[at], step.number) as doing:
            arguments = argument_parsing.check(tool, step.calls[at].args)
            result = await results.call(tool, arguments, occasion, self._with.store_file)
            doing.result = result.text
            return result

    def run_in_background(self, step: ResponseStep, background_calls: Mapping[int, CallId]) -> None:
        """Let calls that the cycle does not wait for continue in the background."""
        for at, call_id in background_calls.items():
            late = self._late.pop((step.number, at), None)
            if late is None:
                tool = self._with.toolbox.by_name[step.calls[at].tool_name]
                assert isinstance(tool, OutsideTool)
                self._with.background_calls.start(self._with.db, call_id, self._work(step, at, tool))
            else:
                self._with.background_calls.start(self._with.db, call_id, late, late=True)
