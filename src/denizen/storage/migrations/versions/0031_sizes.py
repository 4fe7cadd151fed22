"""How much of the database each organization uses, day by day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    op.create_table(
        "sizes",
        sa.Column("organization_id", sa.Text, nullable=False),
        *(
            sa.Column(name, sa.BigInteger, nullable=False)
            for name in ("day", "bytes", "file_bytes", "messages", "cycles")
        ),
        sa.PrimaryKeyConstraint("organization_id", "day", name="pk_sizes"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_sizes_organization_id"),
        sqlite_with_rowid=False,
    )
