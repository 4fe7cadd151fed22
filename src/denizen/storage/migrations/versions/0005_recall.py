"""Recall: what can be found of an agent's life, and the index that finds it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "passages",
        text("agent_id"),
        integer("number"),
        integer("cycle"),
        text("kind"),
        text("space_id", ""),
        sa.Column("speaker_id", sa.Text),
        sa.Column("speaker", sa.Text),
        sa.Column("message_id", sa.Text),
        sa.Column("event_id", sa.Text),
        sa.Column("text", sa.Text),
        integer("start", 0),
        integer("place"),
        integer("characters"),
        sa.Column("own_words", sa.SmallInteger, server_default=sa.text("0"), nullable=False),
        integer("at"),
        *_keys("passages", "agent_id", "number"),
        sqlite_with_rowid=False,
    )
    of_a_message = sa.text("message_id IS NOT NULL")
    op.create_index("ix_passages_place", "passages", ["agent_id", "space_id", "place"])
    op.create_index("ix_passages_at", "passages", ["agent_id", "at"])
    op.create_index("ix_passages_cycle", "passages", ["agent_id", "cycle"])
    op.create_index(
        "ix_passages_message", "passages", ["message_id"], sqlite_where=of_a_message, postgresql_where=of_a_message
    )
    op.create_table(
        "postings",
        text("agent_id"),
        integer("block"),
        text("term"),
        sa.Column("entries", sa.LargeBinary, nullable=False),
        *_keys("postings", "agent_id", "block", "term"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "recalls",
        text("agent_id"),
        integer("passages", 0),
        integer("forgotten", 0),
        integer("length", 0),
        integer("settled", 0),
        text("embedder", ""),
        integer("embedded", 0),
        *_keys("recalls", "agent_id"),
    )
    op.create_table(
        "vectors",
        text("agent_id"),
        text("embedder"),
        integer("first"),
        integer("dimensions"),
        sa.Column("codes", sa.LargeBinary, nullable=False),
        *_keys("vectors", "agent_id", "embedder", "first"),
        sqlite_with_rowid=False,
    )


def _keys(table: str, *columns: str) -> tuple[sa.ForeignKeyConstraint, sa.PrimaryKeyConstraint]:
    return (
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name=f"fk_{table}_agent_id"),
        sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}"),
    )
