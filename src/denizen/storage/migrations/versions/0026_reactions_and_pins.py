"""People react to messages, and pin them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.add_column("messages", sa.Column("reactions", sa.Text))
    op.add_column("messages", sa.Column("pinned_at", sa.BigInteger))
    op.add_column("messages", sa.Column("marked_at", sa.BigInteger))
    pinned, reacted = sa.text("pinned_at IS NOT NULL"), sa.text("reactions IS NOT NULL")
    op.create_index("ix_messages_pinned", "messages", ["space_id", "seq"], sqlite_where=pinned, postgresql_where=pinned)
    op.create_index("ix_messages_reacted", "messages", ["space_id"], sqlite_where=reacted, postgresql_where=reacted)
