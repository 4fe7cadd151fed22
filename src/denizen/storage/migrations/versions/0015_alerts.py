"""Owners are told of an agent's trouble once for each cause."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "alerts",
        text("agent_id"),
        text("cause"),
        text("detail", "{}"),
        integer("created_at"),
        sa.Column("sent_at", sa.BigInteger),
        integer("tries", 0),
        integer("next_at", 0),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_alerts_agent_id"),
        sa.PrimaryKeyConstraint("agent_id", "cause", name="pk_alerts"),
        sqlite_with_rowid=False,
    )
