"""Owners are told that nobody can answer in a panel. A column and a table that are not used any more are dropped."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.drop_table("reservations")
    op.drop_column("agents", "held_told")
    op.create_table(
        "panel_alerts",
        text("space_id"),
        text("cause"),
        text("detail"),
        integer("created_at"),
        sa.Column("sent_at", sa.BigInteger),
        integer("tries", 0),
        integer("next_at", 0),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_panel_alerts_space_id"),
        sa.PrimaryKeyConstraint("space_id", "cause", name="pk_panel_alerts"),
        sqlite_with_rowid=False,
    )
