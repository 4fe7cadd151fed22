"""Crashes of a process are counted apart from failures of the cycle that it was in."""

from __future__ import annotations

from alembic import op

from denizen.storage.migrations.columns import integer

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    op.add_column("cycles", integer("interruptions", 0))
