"""Goals, notes and plans, and the time zone of an agent."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("agents", sa.Column("zone", sa.Text))
    op.create_table(
        "goals",
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("priority", sa.SmallInteger, server_default=sa.text("1"), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_goals_agent_id"),
        sa.PrimaryKeyConstraint("agent_id", "number", name="pk_goals"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "notes",
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_notes_agent_id"),
        sa.PrimaryKeyConstraint("agent_id", "key", name="pk_notes"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "plans",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("instruction", sa.Text, nullable=False),
        sa.Column("schedule", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("next_run", sa.BigInteger, nullable=False),
        sa.Column("last_run", sa.BigInteger),
        sa.Column("reckoned_at", sa.BigInteger, nullable=False),
        sa.Column("hop", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_plans_agent_id"),
        sa.PrimaryKeyConstraint("id", name="pk_plans"),
    )
    named = sa.text("kind = 'plan'")
    waiting = sa.text("state = 'waiting'")
    op.create_index("ix_plans_agent", "plans", ["agent_id", "next_run"])
    op.create_index(
        "ix_plans_name", "plans", ["agent_id", "name"], unique=True, sqlite_where=named, postgresql_where=named
    )
    op.create_index("ix_plans_due", "plans", ["next_run"], sqlite_where=waiting, postgresql_where=waiting)
    op.create_index("ix_plans_reckoned", "plans", ["reckoned_at"], sqlite_where=waiting, postgresql_where=waiting)
