"""Each memory has its history: when it changed, by whom, and why."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    op.create_table(
        "memory_changes",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        integer("memory"),
        text("kind"),
        text("text"),
        sa.Column("by_id", sa.Text),
        text("model", ""),
        text("replaced", "[]"),
        text("sources", "[]"),
        integer("created_at"),
        # By the database itself: an instance of an older version deletes memories as well.
        sa.ForeignKeyConstraint(["memory"], ["memories.number"], name="fk_memory_changes_memory", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("number", name="pk_memory_changes"),
    )
    op.create_index("ix_memory_changes_memory", "memory_changes", ["memory", "number"])
    superseded = sa.text("superseded_by IS NOT NULL")
    op.create_index(
        "ix_memories_superseded",
        "memories",
        ["superseded_by"],
        sqlite_where=superseded,
        postgresql_where=superseded,
    )
