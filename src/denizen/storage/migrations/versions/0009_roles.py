"""Who may do what: roles, sessions and identities; how far people have read; indexes of what is rare."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_OWNERS = """
UPDATE entities SET role = 'owner' WHERE kind = 'human' AND id = (
    SELECT min(first.id) FROM entities first
    WHERE first.kind = 'human' AND first.organization_id = entities.organization_id
)
"""


def upgrade() -> None:
    op.add_column("entities", sa.Column("role", sa.Text, nullable=False, server_default="member"))
    op.add_column("entities", sa.Column("left_at", sa.BigInteger))
    op.add_column("memberships", sa.Column("read_seq", sa.BigInteger, nullable=False, server_default=sa.text("0")))
    op.add_column("tokens", sa.Column("kind", sa.Text, nullable=False, server_default="token"))
    # What a token may do was never more than what its entity may.
    op.add_column("tokens", sa.Column("role", sa.Text, nullable=False, server_default="owner"))
    op.create_table(
        "identities",
        sa.Column("issuer", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("entity_id", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["entity_id"], ["entities.id"], name="fk_identities_entity_id"),
        sa.PrimaryKeyConstraint("issuer", "subject", name="pk_identities"),
        sqlite_with_rowid=False,
    )
    behind = sa.text("passages - settled >= 32")
    op.create_index("ix_recalls_behind", "recalls", ["agent_id"], sqlite_where=behind, postgresql_where=behind)
    others = sa.text("kind <> 'usage'")
    op.create_index("ix_ledger_others", "ledger", ["agent_id", "number"], sqlite_where=others, postgresql_where=others)
    op.create_index("ix_identities_entity", "identities", ["entity_id"])
    op.execute("UPDATE entities SET role = kind WHERE kind <> 'human'")
    # Whoever was there first has made the house.
    op.execute(_OWNERS)
    # What was said before there were marks is not news to anybody.
    op.execute("UPDATE memberships SET read_seq = (SELECT last_seq FROM spaces WHERE spaces.id = memberships.space_id)")
