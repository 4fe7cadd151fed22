"""A process killed while an approval waits, while a person decides, and right after: the effect happens at most once,
no decision is lost, and an approval that nobody gave in time is a refusal."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from sqlalchemy import select

from denizen.checker import check_database
from denizen.clock import ManualClock
from denizen.storage.database import Tx, statement
from denizen.storage.opening import open_database
from denizen.storage.schema import audit, calls, grants, log
from denizen.tools.calls import UNKNOWN_OUTCOME
from tests.crash.approving import DECIDED, EVE, HOUR, WAITS, Life, found, live
from tests.crash.killing import KILLED, ended, processes

ASKING = ["commit:carry_on", "committed:carry_on"]
POINTS = [
    *(
        f"{when}:{write}"
        for write in ("acquire", "open_cycle", "resume_cycle", "end_cycle")
        for when in ("commit", "committed")
    ),
    *ASKING,
    "model.answered",
    "tool.called",
    WAITS,
    "commit:answer_as",
    "committed:answer_as",
    DECIDED,
]
"""Where a process is killed: while the agent asks, while it waits, while a person decides, and after that."""


@dataclass(frozen=True, slots=True)
class Outcome:
    sent: list[dict[str, Any]]
    acknowledged: list[str]
    """What the person was told to have decided."""
    refused: list[str]
    states: list[str]
    """Of the calls that asked."""
    uses_left: list[int]
    decisions: list[str]
    told: str
    """Everything that the agent was told."""


@dataclass
class House:
    """A database, and the processes that live on it one after the other."""

    url: str
    folder: Path
    lives: int = 0

    def live(
        self, answer: Literal["approve", "deny", "none"], kill: tuple[str, int] | None = None, later: int = 60
    ) -> int:
        """Time goes on between two lives: the lease of a dead process is over."""
        self.lives += 1
        life = Life(self.url, self.folder, answer, self.lives * 60 + later, kill)
        process = processes().Process(target=live, args=(life,), name=f"life {self.lives}", daemon=True)
        process.start()
        return ended(process)

    def points(self) -> dict[str, int]:
        return json.loads((self.folder / "points").read_text())

    def outcome(self) -> Outcome:
        return asyncio.run(self._outcome())

    async def _outcome(self) -> Outcome:
        db = await open_database(self.url, clock=ManualClock(), announce=lambda _: None)
        try:
            assert await check_database(db) == []
            states, uses, decisions, told = await db.read(_kept)
        finally:
            await db.close()
        sent = [json.loads(line) for line in self._lines("sent")]
        return Outcome(sent, self._lines("acknowledged"), self._lines("refused"), states, uses, decisions, told)

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


_states = statement(select(calls.c.state).order_by(calls.c.created_at))
_uses = statement(select(grants.c.uses_left))
_decisions = statement(select(audit.c.action).where(audit.c.kind == "approvals").order_by(audit.c.number))
_log = statement(select(log.c.message).order_by(log.c.seq))


def _kept(tx: Tx) -> tuple[list[str], list[int], list[str], str]:
    states, uses, decisions = ([row[0] for row in tx.all(each)] for each in (_states, _uses, _decisions))
    return states, uses, decisions, "\n".join(row[0] for row in tx.all(_log))


@pytest.fixture
def house(ready_url: str, tmp_path: Path) -> House:
    folder = tmp_path / "house"
    folder.mkdir()
    asyncio.run(found(ready_url, folder))
    return House(ready_url, folder)


def test_undisturbed_the_effect_happens_once_and_every_point_is_passed(house: House) -> None:
    assert house.live("approve") == 0
    assert house.outcome().sent == [EVE]
    assert set(POINTS) <= house.points().keys()


DECIDING = ["commit:answer_as", "committed:answer_as", DECIDED]


@pytest.mark.parametrize(
    ("answer", "point"), [*(("approve", each) for each in POINTS), *(("deny", each) for each in DECIDING)]
)
def test_killed_anywhere_a_decision_counts_once(house: House, answer: Literal["approve", "deny"], point: str) -> None:
    """Killed at the point, and so is the next process if it comes there; the last one finishes."""
    assert house.live(answer, kill=(point, 1)) == KILLED
    house.live(answer, kill=(point, 1))  # which may not come there any more
    assert house.live(answer) == 0
    found = house.outcome()
    assert found.states == ["answered"]
    assert found.decisions == ["ask_approval", "approve_effect" if answer == "approve" else "refuse_effect"]
    assert found.acknowledged in ([answer], [])
    if answer == "deny":
        assert (found.sent, found.uses_left) == ([], [])
        assert "Refused: a person did not approve this call of send_email." in found.told
        return
    assert found.uses_left == [0]
    unknown = UNKNOWN_OUTCOME[:30] in found.told
    assert found.sent == [EVE] or (found.sent == [] and unknown), "made once, or the agent knows that nobody knows"


@pytest.mark.parametrize("point", [*ASKING, WAITS])
def test_killed_while_it_waits_and_nobody_decides_in_time_it_is_refused(house: House, point: str) -> None:
    """Also if the person approves in the first moment of the next process, before it has seen that time is over."""
    assert house.live("none", kill=(point, 2 if point in ASKING else 1)) == KILLED
    assert house.live("none") == 0
    assert house.live("approve", later=2 * HOUR) == 0
    found = house.outcome()
    assert (found.sent, found.acknowledged, found.uses_left) == ([], [], [])
    assert found.refused == ["The time to approve this is over: it counts as refused."]
    assert found.decisions == ["ask_approval"]
    assert found.states == ["expired"]
    assert "Refused: nobody approved this call of send_email within 1 hour." in found.told
