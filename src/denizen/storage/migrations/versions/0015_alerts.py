"""Owners are told of an agent's trouble once for each cause."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def _text(name: str, default: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default=default)


def _int(name: str, default: int | None = None) -> sa.Column[int]:
    given = None if default is None else sa.text(str(default))
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=given)


def upgrade() -> None:
    op.create_table(
        "alerts",
        _text("agent_id"),
        _text("cause"),
        _text("detail", "{}"),
        _int("created_at"),
        sa.Column("sent_at", sa.BigInteger),
        _int("tries", 0),
        _int("next_at", 0),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_alerts_agent_id"),
        sa.PrimaryKeyConstraint("agent_id", "cause", name="pk_alerts"),
        sqlite_with_rowid=False,
    )
