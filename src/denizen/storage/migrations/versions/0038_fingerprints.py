"""Hashes of words in a row, by which the privacy guard finds quotations of an agent's past."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    op.add_column("recalls", integer("fingerprinted", 0))
    op.add_column("recalls", integer("fingerprint_form", 0))
    op.create_table(
        "fingerprints",
        text("agent_id"),
        sa.Column("hash", sa.BigInteger, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("agent_id", "hash", "number", name="pk_fingerprints"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_fingerprints_agent_id"),
        sqlite_with_rowid=False,
    )
