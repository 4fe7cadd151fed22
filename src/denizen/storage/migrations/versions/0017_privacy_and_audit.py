"""Where an agent's texts come from, private spaces that an owner has opened, and who changed what."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0017"
down_revision = "0016"

_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


_FACTS = (
    """
    INSERT INTO fact_spaces (agent_id, fact, space_id)
    SELECT DISTINCT goals.agent_id, 'goal:' || goals.number, spaces.id
    FROM goals JOIN cycle_spaces ON cycle_spaces.agent_id = goals.agent_id
    JOIN spaces ON spaces.id = cycle_spaces.space_id WHERE spaces.private = 1
    """,
    """
    INSERT INTO fact_spaces (agent_id, fact, space_id)
    SELECT DISTINCT notes.agent_id, 'note:' || notes.key, spaces.id
    FROM notes JOIN cycle_spaces ON cycle_spaces.agent_id = notes.agent_id
    JOIN spaces ON spaces.id = cycle_spaces.space_id WHERE spaces.private = 1
    """,
    """
    INSERT INTO fact_spaces (agent_id, fact, space_id)
    SELECT DISTINCT plans.agent_id, 'plan:' || plans.id, spaces.id
    FROM plans JOIN cycle_spaces ON cycle_spaces.agent_id = plans.agent_id
    JOIN spaces ON spaces.id = cycle_spaces.space_id WHERE spaces.private = 1 AND plans.kind <> 'heartbeat'
    """,
)


_KEPT = {
    "sqlite": (
        """
        CREATE TRIGGER audit_update BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'audit rows are never changed'); END
        """,
        """
        CREATE TRIGGER audit_delete BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'audit rows are never changed'); END
        """,
    ),
    "postgresql": (
        """
        CREATE FUNCTION denizen_keep_audit() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'audit rows are never changed'; END $$
        """,
        """
        CREATE TRIGGER audit_kept BEFORE UPDATE OR DELETE ON audit
        FOR EACH ROW EXECUTE FUNCTION denizen_keep_audit()
        """,
    ),
}
"""Rows of the audit log are added, and that is all."""


def upgrade() -> None:
    op.create_table(
        "cycle_spaces",
        text("cycle_id"),
        text("space_id"),
        text("agent_id"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_cycle_spaces_agent_id"),
        sa.PrimaryKeyConstraint("cycle_id", "space_id", name="pk_cycle_spaces"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_cycle_spaces_agent", "cycle_spaces", ["agent_id", "space_id"])
    op.create_table(
        "fact_spaces",
        text("agent_id"),
        text("fact"),
        text("space_id"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_fact_spaces_agent_id"),
        sa.PrimaryKeyConstraint("agent_id", "fact", "space_id", name="pk_fact_spaces"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "openings",
        text("id"),
        text("organization_id"),
        text("space_id"),
        text("by_id"),
        text("reason"),
        integer("after_seq"),
        integer("created_at"),
        integer("until"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_openings_organization_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_openings_space_id"),
        sa.ForeignKeyConstraint(["by_id"], ["entities.id"], name="fk_openings_by_id"),
        sa.PrimaryKeyConstraint("id", name="pk_openings"),
    )
    op.create_index("ix_openings_space", "openings", ["space_id", "created_at"])
    op.create_index("ix_openings_by", "openings", ["by_id", "until"])
    op.create_table(
        "audit",
        sa.Column("number", _Number, autoincrement=True),
        text("organization_id"),
        integer("created_at"),
        sa.Column("by_id", sa.Text),
        sa.Column("token_id", sa.Text),
        text("kind"),
        text("action"),
        sa.Column("subject_id", sa.Text),
        text("detail", "{}"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_audit_organization_id"),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_index("ix_audit_organization", "audit", ["organization_id", "number"])
    op.create_index("ix_audit_by", "audit", ["organization_id", "by_id", "number"])
    op.create_index("ix_audit_kind", "audit", ["organization_id", "kind", "number"])
    for step in _KEPT[op.get_bind().dialect.name]:
        op.execute(step)
    _fill()


def _fill() -> None:
    """Cycles of the past get the spaces of their events, of their messages and of where they were. Goals, notes and
    plans do not say which cycle made them: they get every private space that their agent has been in."""
    op.execute("""
        INSERT INTO cycle_spaces (cycle_id, space_id, agent_id)
        SELECT cycle_id, space_id, agent_id FROM events WHERE cycle_id IS NOT NULL AND space_id IS NOT NULL
        UNION
        SELECT cycles.id, messages.space_id, cycles.agent_id
        FROM messages JOIN cycles ON cycles.id = messages.cycle_id
        UNION
        SELECT id, active_space_id, agent_id FROM cycles WHERE active_space_id IS NOT NULL
    """)
    for facts in _FACTS:
        op.execute(facts)
