"""The index of recall says which version of its terms it has, so that an upgrade can make them again."""

from __future__ import annotations

from alembic import op

from denizen.storage.migrations.columns import integer

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    op.add_column("recalls", integer("terms", 0))
    op.create_index("ix_recalls_terms", "recalls", ["terms"])
