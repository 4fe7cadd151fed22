"""Who waits for an answer, why there is none yet, and which agents take up what a person says."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("events", sa.Column("waits", sa.SmallInteger, nullable=False, server_default=sa.text("0")))
    op.add_column("events", integer("interruptions", 0))
    op.add_column("agents", sa.Column("parked_cause", sa.Text))
    op.add_column("agents", sa.Column("parked_detail", sa.Text))
    op.add_column("agents", sa.Column("parked_until", sa.BigInteger))
    op.add_column("agents", integer("parked_tries", 0))
    parked = sa.text("parked_cause IS NOT NULL")
    op.create_index("ix_agents_parked", "agents", ["parked_until"], sqlite_where=parked, postgresql_where=parked)
    op.add_column("spaces", text("floor", "all"))
    op.add_column("spaces", integer("agent_run_limit", 12))
    op.add_column("spaces", integer("agent_run", 0))
    op.create_table(
        "space_statuses",
        text("space_id"),
        text("agent_id"),
        text("cause"),
        text("detail", "{}"),
        sa.Column("message_id", sa.Text),
        sa.Column("retry_at", sa.BigInteger),
        integer("created_at"),
        integer("updated_at"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_space_statuses_space_id"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_space_statuses_agent_id"),
        sa.PrimaryKeyConstraint("space_id", "agent_id", "cause", name="pk_space_statuses"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_space_statuses_agent", "space_statuses", ["agent_id"])
    op.add_column("calls", sa.Column("approval", sa.SmallInteger, nullable=False, server_default=sa.text("0")))
    op.add_column("calls", sa.Column("released_at", sa.BigInteger))
    waiting = sa.text("state = 'waiting'")
    op.create_index("ix_calls_asked", "calls", ["space_id"], sqlite_where=waiting, postgresql_where=waiting)
