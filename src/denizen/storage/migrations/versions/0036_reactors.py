"""Whose reaction it was that came from a room elsewhere."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    op.add_column("carried", sa.Column("reactor_id", sa.Text))
