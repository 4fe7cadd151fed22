"""Conversations that are read from a channel, such as the threads of a mailbox; and bridges that are paused."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    op.add_column("bridges", sa.Column("paused_at", sa.BigInteger))
    op.add_column("channels", sa.Column("parent_id", sa.Text))
