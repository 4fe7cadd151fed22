"""From a message to its events, and from a cycle to the long texts it kept, without reading all of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    of_a_message = sa.text("message_id IS NOT NULL")
    op.create_index(
        "ix_events_message", "events", ["message_id"], sqlite_where=of_a_message, postgresql_where=of_a_message
    )
    op.create_index("ix_overflow_cycle", "overflow", ["cycle_id"])
