"""Agents get files from tools and services."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.add_column("files", sa.Column("agent_id", sa.Text))
    op.drop_index("ix_files_unattached", "files")
    unattached, of_agent = sa.text("message_id IS NULL AND agent_id IS NULL"), sa.text("agent_id IS NOT NULL")
    op.create_index(
        "ix_files_unattached", "files", ["created_at"], sqlite_where=unattached, postgresql_where=unattached
    )
    op.create_index("ix_files_agent", "files", ["agent_id"], sqlite_where=of_agent, postgresql_where=of_agent)
