"""Messages are shown elsewhere while they are written."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    op.create_table(
        "drafts",
        text("channel_id"),
        text("message_id"),
        sa.Column("outside_id", sa.Text),
        integer("created_at"),
        sa.PrimaryKeyConstraint("channel_id", "message_id", name="pk_drafts"),
        sa.ForeignKeyConstraint(["channel_id"], ["channels.id"], name="fk_drafts_channel_id"),
        sqlite_with_rowid=False,
    )
