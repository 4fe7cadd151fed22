"""What the words of passages mean, beside what each passage means as a whole."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("recalls", sa.Column("worded", sa.BigInteger, nullable=False, server_default=sa.text("0")))
    op.create_table(
        "wordings",
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("embedder", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("codes", sa.LargeBinary, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_wordings_agent_id"),
        sa.PrimaryKeyConstraint("agent_id", "embedder", "number", name="pk_wordings"),
        sqlite_with_rowid=False,
    )
