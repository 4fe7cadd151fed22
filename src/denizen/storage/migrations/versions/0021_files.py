"""Files can be attached to messages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _int(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def upgrade() -> None:
    op.add_column("messages", sa.Column("files", sa.Text))
    op.create_table(
        "contents",
        _text("id"),
        _text("organization_id"),
        sa.Column("digest", sa.Text),
        _text("link_key"),
        _int("size"),
        _int("created_at"),
        sa.Column("dropped_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_contents"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_contents_organization_id"),
        sa.UniqueConstraint("organization_id", "digest", name="uq_contents_organization_id_digest"),
    )
    dropped = sa.text("dropped_at IS NOT NULL")
    op.create_index("ix_contents_dropped", "contents", ["dropped_at"], sqlite_where=dropped, postgresql_where=dropped)
    op.create_table(
        "files",
        _text("id"),
        _text("organization_id"),
        _text("uploader_id"),
        _text("content_id"),
        _text("name"),
        _text("media_type"),
        sa.Column("message_id", sa.Text),
        _int("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_files"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_files_organization_id"),
        sa.ForeignKeyConstraint(["uploader_id"], ["entities.id"], name="fk_files_uploader_id"),
        sa.ForeignKeyConstraint(["content_id"], ["contents.id"], name="fk_files_content_id"),
        sa.ForeignKeyConstraint(["message_id"], ["messages.id"], name="fk_files_message_id"),
    )
    attached, unattached = sa.text("message_id IS NOT NULL"), sa.text("message_id IS NULL")
    op.create_index("ix_files_message", "files", ["message_id"], sqlite_where=attached, postgresql_where=attached)
    op.create_index(
        "ix_files_unattached", "files", ["created_at"], sqlite_where=unattached, postgresql_where=unattached
    )
    op.create_index("ix_files_content", "files", ["content_id"])
    op.create_table(
        "file_pages",
        _text("content_id"),
        sa.Column("page", sa.Integer, nullable=False),
        _text("text"),
        sa.PrimaryKeyConstraint("content_id", "page", name="pk_file_pages"),
        sa.ForeignKeyConstraint(["content_id"], ["contents.id"], name="fk_file_pages_content_id"),
        sqlite_with_rowid=False,
    )
    # On SQLite the bytes are in a file of their own, which is created when the first file is uploaded.
    if op.get_bind().dialect.name == "postgresql":
        op.create_table(
            "chunks",
            _text("content_id"),
            sa.Column("n", sa.Integer, nullable=False),
            sa.Column("data", sa.LargeBinary, nullable=False),
            sa.PrimaryKeyConstraint("content_id", "n", name="pk_chunks"),
        )
