"""What conversations come to, and what is remembered beyond them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def _text(name: str, default: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default=default)


def _int(name: str, default: int | None = None) -> sa.Column[int]:
    given = None if default is None else sa.text(str(default))
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=given)


def upgrade() -> None:
    op.create_table(
        "rollings",
        _text("space_id"),
        _text("reader_id"),
        _text("summary"),
        _text("memory"),
        _int("upto"),
        _int("passes", 0),
        _text("model"),
        _int("tried_at", 0),
        _int("failures", 0),
        _int("updated_at"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_rollings_space_id"),
        sa.PrimaryKeyConstraint("space_id", "reader_id", name="pk_rollings"),
        sqlite_with_rowid=False,
    )
    _create_memories()
    op.create_table(
        "memory_policies",
        _text("space_id"),
        _text("policy"),
        _int("updated_at"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_memory_policies_space_id"),
        sa.PrimaryKeyConstraint("space_id", name="pk_memory_policies"),
    )
    op.create_table(
        "kept_out",
        _text("owner"),
        _text("hash"),
        _int("created_at"),
        sa.PrimaryKeyConstraint("owner", "hash", name="pk_kept_out"),
        sqlite_with_rowid=False,
    )


def _create_memories() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "memories",
        sa.Column("number", number, autoincrement=True, nullable=False),
        _text("id"),
        _text("organization_id"),
        _text("scope"),
        _text("owner"),
        _text("space_id"),
        sa.Column("user_id", sa.Text),
        sa.Column("agent_id", sa.Text),
        _text("kind"),
        _text("category"),
        _text("text"),
        sa.Column("document", sa.Text),
        _text("hash"),
        _int("confidence", 100),
        _text("sources", "[]"),
        _int("length"),
        _int("uses", 0),
        sa.Column("used_at", sa.BigInteger),
        sa.Column("superseded_by", sa.Text),
        _text("embedder", ""),
        sa.Column("vector", sa.LargeBinary),
        _int("created_at"),
        _int("updated_at"),
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
        _text("message_id"),
        _int("number"),
        sa.PrimaryKeyConstraint("message_id", "number", name="pk_memory_sources"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_memory_sources_number", "memory_sources", ["number"])
    op.create_table(
        "memory_owners",
        _text("owner"),
        _int("items", 0),
        _int("length", 0),
        sa.PrimaryKeyConstraint("owner", name="pk_memory_owners"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "memory_terms",
        _text("owner"),
        _text("term"),
        _int("number"),
        _int("shape"),
        sa.PrimaryKeyConstraint("owner", "term", "number", name="pk_memory_terms"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_memory_terms_number", "memory_terms", ["number"])
