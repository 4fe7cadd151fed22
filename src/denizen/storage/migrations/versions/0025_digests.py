"""Chains of digests show whether messages or logs were damaged, and a roster shows missing rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def upgrade() -> None:
    for table, columns in {
        "minds": ("head",),
        "spaces": ("head",),
        "messages": ("salt", "digest"),
        "cycles": ("digest",),
        "log": ("salt", "digest"),
    }.items():
        for column in columns:
            op.add_column(table, sa.Column(column, sa.LargeBinary))
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "amendments",
        sa.Column("number", number, autoincrement=True, nullable=False),
        _text("chain_id"),
        _text("row_id"),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("salt", sa.LargeBinary),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_amendments"),
    )
    op.create_index("ix_amendments_chain", "amendments", ["chain_id", "number"])
    op.create_table(
        "roster",
        _text("kind"),
        _text("id"),
        _text("member_id"),
        sa.PrimaryKeyConstraint("kind", "id", "member_id", name="pk_roster"),
        sqlite_with_rowid=False,
    )
    for kind, source in {
        "organization": "id, '' FROM organizations",
        "entity": "id, '' FROM entities",
        "space": "id, '' FROM spaces",
        "member": "space_id, entity_id FROM memberships",
    }.items():
        op.execute(f"INSERT INTO roster (kind, id, member_id) SELECT '{kind}', {source}")
