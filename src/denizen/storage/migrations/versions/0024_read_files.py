"""Files are read in the background, and their text can be recalled."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    op.add_column("contents", sa.Column("reading", sa.Text))
    op.add_column("contents", sa.Column("trouble", sa.Text))
    op.add_column("contents", sa.Column("width", sa.Integer))
    op.add_column("contents", sa.Column("height", sa.Integer))
    op.add_column("contents", sa.Column("claimed_until", sa.BigInteger))
    op.add_column("contents", sa.Column("tries", sa.Integer))
    to_read = sa.text("reading = 'waiting'")
    op.create_index("ix_contents_reading", "contents", ["created_at"], sqlite_where=to_read, postgresql_where=to_read)
    op.add_column("passages", sa.Column("file_id", sa.Text))
    op.add_column("passages", sa.Column("page", sa.Integer))
    of_a_file = sa.text("file_id IS NOT NULL")
    op.create_index("ix_passages_file", "passages", ["file_id"], sqlite_where=of_a_file, postgresql_where=of_a_file)
    op.create_table(
        "heard_files",
        text("agent_id"),
        text("file_id"),
        integer("cycle"),
        integer("next_page", 1),
        sa.PrimaryKeyConstraint("agent_id", "file_id", name="pk_heard_files"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_heard_files_agent_id"),
        sa.ForeignKeyConstraint(["file_id"], ["files.id"], name="fk_heard_files_file_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_heard_files_file", "heard_files", ["file_id"])
