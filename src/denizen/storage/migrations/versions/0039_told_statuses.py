"""Statuses are told in rooms elsewhere."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    op.create_table(
        "told_statuses",
        text("channel_id"),
        text("agent_id"),
        text("cause"),
        integer("since"),
        sa.PrimaryKeyConstraint("channel_id", "agent_id", "cause", name="pk_told_statuses"),
        sa.ForeignKeyConstraint(["channel_id"], ["channels.id"], name="fk_told_statuses_channel_id"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_told_statuses_agent_id"),
        sqlite_with_rowid=False,
    )
