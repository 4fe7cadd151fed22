"""Approvals of effects: why a person is asked, what they have granted, and which rule allowed a call."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _int(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def upgrade() -> None:
    op.add_column("calls", sa.Column("why", sa.Text))
    op.add_column("effects", sa.Column("rule", sa.Text))
    op.create_table(
        "grants",
        _text("id"),
        _text("agent_id"),
        _text("tool"),
        _text("digest"),
        _text("arguments"),
        _int("uses_left"),
        _int("expires_at"),
        _text("given_by"),
        _text("call_id"),
        sa.Column("space_id", sa.Text),
        _int("created_at"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_grants_agent_id"),
        sa.ForeignKeyConstraint(["given_by"], ["entities.id"], name="fk_grants_given_by"),
        sa.PrimaryKeyConstraint("id", name="pk_grants"),
    )
    op.create_index("ix_grants_agent", "grants", ["agent_id", "tool", "digest"])
