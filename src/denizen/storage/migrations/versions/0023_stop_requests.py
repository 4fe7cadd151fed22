"""People stop what agents write."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.create_table(
        "stop_requests",
        text("agent_id"),
        text("space_id"),
        text("cycle_id"),
        integer("seq"),
        text("by_id"),
        integer("created_at"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_stop_requests_agent_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_stop_requests_space_id"),
        sa.ForeignKeyConstraint(["by_id"], ["entities.id"], name="fk_stop_requests_by_id"),
        sa.PrimaryKeyConstraint("agent_id", "space_id", name="pk_stop_requests"),
        sqlite_with_rowid=False,
    )
