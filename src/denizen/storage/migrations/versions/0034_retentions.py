"""How long the messages of a space are kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    op.create_table(
        "retentions",
        sa.Column("space_id", sa.Text, nullable=False),
        sa.Column("days", sa.BigInteger, nullable=False),
        sa.Column("archive", sa.SmallInteger, nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("space_id", name="pk_retentions"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_retentions_space_id"),
        sqlite_with_rowid=False,
    )
