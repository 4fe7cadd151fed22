"""One reservation for each model call, and which instance reflects on the next turn of an agent or a panel."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _int(name: str, default: int | None = None) -> sa.Column[int]:
    given = None if default is None else sa.text(str(default))
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=given)


def upgrade() -> None:
    op.create_table(
        "call_reservations",
        _text("payer_id"),
        _text("call"),
        _text("organization_id"),
        _int("epoch", 0),
        _int("until", 0),
        _int("tokens"),
        _int("cost_micros"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_call_reservations_organization_id"),
        sa.PrimaryKeyConstraint("payer_id", "call", name="pk_call_reservations"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_call_reservations_organization", "call_reservations", ["organization_id"])
    op.add_column("reflecting", sa.Column("holder", sa.Text))
    op.add_column("panel_reflecting", sa.Column("holder", sa.Text))
