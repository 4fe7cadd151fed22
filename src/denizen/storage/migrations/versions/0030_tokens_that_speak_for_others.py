"""A token may speak for others: for the people behind a program such as Open WebUI."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    op.add_column(
        "tokens", sa.Column("speaks_for_others", sa.SmallInteger, nullable=False, server_default=sa.text("0"))
    )
