"""Layers of a long life; edited, deleted and forgotten messages; private words that were stopped."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

# SQLite numbers rows by itself only where the type is exactly INTEGER.
_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("selves", sa.Column("layers", sa.Text))
    op.add_column("selves", sa.Column("shortened", sa.Text))
    op.add_column("messages", sa.Column("edited_at", sa.BigInteger))
    op.add_column("messages", sa.Column("deleted_at", sa.BigInteger))
    op.create_table(
        "layers",
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("level", sa.Integer, nullable=False),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_layers_agent_id"),
        sa.PrimaryKeyConstraint("agent_id", "level", "first", name="pk_layers"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "redactions",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("organization_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("subject_id", sa.Text, nullable=False),
        sa.Column("by_id", sa.Text),
        sa.Column("receipt", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_redactions_organization_id"),
        sa.PrimaryKeyConstraint("id", name="pk_redactions"),
    )
    op.create_index("ix_redactions_organization", "redactions", ["organization_id", "created_at"])
    op.create_table(
        "crossings",
        sa.Column("number", _Number, autoincrement=True, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("cycle_id", sa.Text, nullable=False),
        sa.Column("from_space_id", sa.Text, nullable=False),
        sa.Column("to_space_id", sa.Text, nullable=False),
        sa.Column("words", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_crossings_agent_id"),
        sa.PrimaryKeyConstraint("number", name="pk_crossings"),
    )
    op.create_index("ix_crossings_agent", "crossings", ["agent_id", "number"])
