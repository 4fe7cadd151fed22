"""An agent whose settings were stored by another version of Denizen."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from sqlalchemy import bindparam, update
from structlog.testing import capture_logs

from denizen import Runtime, scripted
from denizen.storage.database import Tx, statement
from denizen.storage.schema import agents

_store = statement(update(agents).where(agents.c.id == bindparam("agent")).values(definition=bindparam("stored")))


async def test_settings_that_cannot_be_read_are_told_and_leave_no_traceback() -> None:
    """A server that was set back to an earlier version may not know a setting. That is no defect of the server."""
    async with Runtime() as denizen:
        noor = await denizen.people.create("Noor")
        ada = await denizen.agents.create("Ada", model=scripted("Good morning."))
        space = await denizen.spaces.create("Kitchen", [noor, ada])

        def store(tx: Tx) -> None:
            tx.run(_store, agent=ada.id, stored='{"model": "demo", "setting_of_tomorrow": 1}')

        await denizen.db.write(store)
        await denizen.spaces.post(space, noor, "Good morning!")
        with capture_logs() as logs, pytest.raises(ValidationError):
            await denizen.run_until_idle()

        told = [each for each in logs if each["event"] == "stored settings cannot be read"]
        assert [each["fields"] for each in told] == [["setting_of_tomorrow"]]
        assert not [each for each in logs if each.get("exc_info")]
        statuses = await denizen.spaces.statuses(space)
        assert [each.cause for each in statuses] == ["definition"]
