"""Approvals of effects: why a person is asked, what they have granted, and which rule allowed a call."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.add_column("calls", sa.Column("why", sa.Text))
    op.add_column("effects", sa.Column("rule", sa.Text))
    op.create_table(
        "grants",
        text("id"),
        text("agent_id"),
        text("tool"),
        text("digest"),
        text("arguments"),
        integer("uses_left"),
        integer("expires_at"),
        text("given_by"),
        text("call_id"),
        sa.Column("space_id", sa.Text),
        integer("created_at"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_grants_agent_id"),
        sa.ForeignKeyConstraint(["given_by"], ["entities.id"], name="fk_grants_given_by"),
        sa.PrimaryKeyConstraint("id", name="pk_grants"),
    )
    op.create_index("ix_grants_agent", "grants", ["agent_id", "tool", "digest"])
