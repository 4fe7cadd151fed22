"""Which texts come from outside, or were made from such."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

_FLAGGED = (
    *("messages", "minds", "selves", "notes", "goals", "plans"),
    *("calls", "rollings", "memories", "replies"),
)
_FROM_OUTSIDE = sa.text("outside = 1")


def upgrade() -> None:
    for table in _FLAGGED:
        flag: sa.Column[int] = sa.Column("outside", sa.SmallInteger, nullable=False, server_default=sa.text("0"))
        op.add_column(table, flag)
    op.add_column("log", sa.Column("outside", sa.Text))
    op.add_column("effects", sa.Column("outside", sa.Text))
    op.add_column("cycles", sa.Column("outside_from", sa.BigInteger))
    _fill()
    op.create_index(
        "ix_messages_outside",
        "messages",
        ["space_id", "seq"],
        sqlite_where=_FROM_OUTSIDE,
        postgresql_where=_FROM_OUTSIDE,
    )


def _fill() -> None:
    """What agents had read before is not known. Whatever people did not write counts as from outside: what agents and
    services said, what agents have in mind and have written down, and what models made of conversations."""
    op.execute("""
        UPDATE messages SET outside = 1
        WHERE author_id IN (SELECT id FROM entities WHERE kind <> 'human')
    """)
    op.execute("UPDATE cycles SET outside_from = first_seq")
    op.execute("UPDATE minds SET outside = 1 WHERE cycle_count > 0")
    op.execute("UPDATE selves SET outside = 1 WHERE layers IS NOT NULL")
    # What is still to be carried out; of what is past, its cycle tells.
    op.execute("""
        UPDATE log SET outside = '[]'
        WHERE kind = 'response' AND cycle_id IN (SELECT id FROM cycles WHERE number IS NULL)
    """)
    for facts, key in (("goals", "'goal:' || goals.number"), ("notes", "'note:' || notes.key")):
        op.execute(f"""
            UPDATE {facts} SET outside = 1 WHERE EXISTS (
                SELECT 1 FROM fact_spaces
                WHERE fact_spaces.agent_id = {facts}.agent_id AND fact_spaces.fact = {key})
        """)  # noqa: S608
    op.execute("""
        UPDATE plans SET outside = 1 WHERE kind <> 'heartbeat' AND EXISTS (
            SELECT 1 FROM fact_spaces
            WHERE fact_spaces.agent_id = plans.agent_id AND fact_spaces.fact = 'plan:' || plans.id)
    """)
    op.execute("UPDATE calls SET outside = 1 WHERE mode IN ('visible', 'service', 'background', 'late')")
    op.execute("UPDATE rollings SET outside = 1")
    op.execute("UPDATE memories SET outside = 1")
