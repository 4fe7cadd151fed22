"""What conversations come to, and what is remembered beyond them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "rollings",
        text("space_id"),
        text("reader_id"),
        text("summary"),
        text("memory"),
        integer("upto"),
        integer("passes", 0),
        text("model"),
        integer("tried_at", 0),
        integer("failures", 0),
        integer("updated_at"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_rollings_space_id"),
        sa.PrimaryKeyConstraint("space_id", "reader_id", name="pk_rollings"),
        sqlite_with_rowid=False,
    )
    _create_memories()
    op.create_table(
        "memory_policies",
        text("space_id"),
        text("policy"),
        integer("updated_at"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_memory_policies_space_id"),
        sa.PrimaryKeyConstraint("space_id", name="pk_memory_policies"),
    )
    op.create_table(
        "kept_out",
        text("owner"),
        text("hash"),
        integer("created_at"),
        sa.PrimaryKeyConstraint("owner", "hash", name="pk_kept_out"),
        sqlite_with_rowid=False,
    )


def _create_memories() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "memories",
        sa.Column("number", number, autoincrement=True, nullable=False),
        text("id"),
        text("organization_id"),
        text("scope"),
        text("owner"),
        text("space_id"),
        sa.Column("user_id", sa.Text),
        sa.Column("agent_id", sa.Text),
        text("kind"),
        text("category"),
        text("text"),
        sa.Column("document", sa.Text),
        text("hash"),
        integer("confidence", 100),
        text("sources", "[]"),
        integer("length"),
        integer("uses", 0),
        sa.Column("used_at", sa.BigInteger),
        sa.Column("superseded_by", sa.Text),
        text("embedder", ""),
        sa.Column("vector", sa.LargeBinary),
        integer("created_at"),
        integer("updated_at"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_memories_organization_id"),
        sa.PrimaryKeyConstraint("number", name="pk_memories"),
        sa.UniqueConstraint("id", name="uq_memories_id"),
        sa.UniqueConstraint("owner", "hash", name="uq_memories_owner_hash"),
    )
    op.create_index("ix_memories_owner", "memories", ["owner", "number"])
    op.create_index("ix_memories_space", "memories", ["space_id"])
    op.create_index("ix_memories_user", "memories", ["user_id"])
    op.create_index("ix_memories_organization", "memories", ["organization_id", "number"])
    op.create_table(
        "memory_sources",
        text("message_id"),
        integer("number"),
        sa.PrimaryKeyConstraint("message_id", "number", name="pk_memory_sources"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_memory_sources_number", "memory_sources", ["number"])
    op.create_table(
        "memory_owners",
        text("owner"),
        integer("items", 0),
        integer("length", 0),
        sa.PrimaryKeyConstraint("owner", name="pk_memory_owners"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "memory_terms",
        text("owner"),
        text("term"),
        integer("number"),
        integer("shape"),
        sa.PrimaryKeyConstraint("owner", "term", "number", name="pk_memory_terms"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_memory_terms_number", "memory_terms", ["number"])
