"""Finds the events of a space that an agent is to try again later, however many others wait."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    put_off = sa.text("state = 'pending' AND not_before > 0")
    op.create_index(
        "ix_events_put_off",
        "events",
        ["agent_id", "space_id", "not_before"],
        sqlite_where=put_off,
        postgresql_where=put_off,
    )
