"""Owners are told that nobody can answer in a panel. A column and a table that are not used any more are dropped."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _int(name: str, default: int | None = None) -> sa.Column[int]:
    given = None if default is None else sa.text(str(default))
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=given)


def upgrade() -> None:
    op.drop_table("reservations")
    op.drop_column("agents", "held_told")
    op.create_table(
        "panel_alerts",
        _text("space_id"),
        _text("cause"),
        _text("detail"),
        _int("created_at"),
        sa.Column("sent_at", sa.BigInteger),
        _int("tries", 0),
        _int("next_at", 0),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_panel_alerts_space_id"),
        sa.PrimaryKeyConstraint("space_id", "cause", name="pk_panel_alerts"),
        sqlite_with_rowid=False,
    )
