"""Recall: what can be found of an agent's life, and the index that finds it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "passages",
        _text("agent_id"),
        _int("number"),
        _int("cycle"),
        _text("kind"),
        _text("space_id", ""),
        sa.Column("speaker_id", sa.Text),
        sa.Column("speaker", sa.Text),
        sa.Column("message_id", sa.Text),
        sa.Column("event_id", sa.Text),
        sa.Column("text", sa.Text),
        _int("start", 0),
        _int("place"),
        _int("characters"),
        sa.Column("own_words", sa.SmallInteger, server_default=sa.text("0"), nullable=False),
        _int("at"),
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
        _text("agent_id"),
        _int("block"),
        _text("term"),
        sa.Column("entries", sa.LargeBinary, nullable=False),
        *_keys("postings", "agent_id", "block", "term"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "recalls",
        _text("agent_id"),
        _int("passages", 0),
        _int("forgotten", 0),
        _int("length", 0),
        _int("settled", 0),
        _text("embedder", ""),
        _int("embedded", 0),
        *_keys("recalls", "agent_id"),
    )
    op.create_table(
        "vectors",
        _text("agent_id"),
        _text("embedder"),
        _int("first"),
        _int("dimensions"),
        sa.Column("codes", sa.LargeBinary, nullable=False),
        *_keys("vectors", "agent_id", "embedder", "first"),
        sqlite_with_rowid=False,
    )


def _text(name: str, default: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text, server_default=default, nullable=False)


def _int(name: str, default: int | None = None) -> sa.Column[int]:
    given = None if default is None else sa.text(str(default))
    return sa.Column(name, sa.BigInteger, server_default=given, nullable=False)


def _keys(table: str, *columns: str) -> tuple[sa.ForeignKeyConstraint, sa.PrimaryKeyConstraint]:
    return (
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name=f"fk_{table}_agent_id"),
        sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}"),
    )
