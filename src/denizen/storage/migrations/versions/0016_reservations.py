"""One reservation for each model call, and which instance reflects on the next turn of an agent or a panel."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "call_reservations",
        text("payer_id"),
        text("call"),
        text("organization_id"),
        integer("epoch", 0),
        integer("until", 0),
        integer("tokens"),
        integer("cost_micros"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_call_reservations_organization_id"),
        sa.PrimaryKeyConstraint("payer_id", "call", name="pk_call_reservations"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_call_reservations_organization", "call_reservations", ["organization_id"])
    op.add_column("reflecting", sa.Column("holder", sa.Text))
    op.add_column("panel_reflecting", sa.Column("holder", sa.Text))
