"""Calls that people see or answer, secrets, webhooks, and what each agent spends on each day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer

revision = "0004"
down_revision = "0003"

_DAY = 86_400_000_000


def upgrade() -> None:
    _agents_held_by_their_budget()
    _calls()
    _secrets_and_webhooks()
    _spending()


def _agents_held_by_their_budget() -> None:
    op.add_column("agents", sa.Column("held_by", sa.Text))
    op.add_column("agents", sa.Column("held_until", sa.BigInteger))
    op.add_column("agents", sa.Column("held_told", sa.Text))
    held = sa.text("held_by IS NOT NULL")
    op.create_index("ix_agents_held", "agents", ["held_until"], sqlite_where=held, postgresql_where=held)


def _calls() -> None:
    op.create_table(
        "calls",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("cycle_id", sa.Text, nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("space_id", sa.Text),
        sa.Column("shown", sa.SmallInteger, server_default=sa.text("0"), nullable=False),
        integer("after_seq", 0),
        sa.Column("arguments", sa.Text, nullable=False),
        sa.Column("result", sa.Text),
        integer("hop", 0),
        sa.Column("runner", sa.Text),
        sa.Column("on_crash", sa.Text, server_default="report", nullable=False),
        integer("created_at"),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("settled_at", sa.BigInteger),
        sa.Column("settled_by", sa.Text),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_calls_agent_id"),
        sa.PrimaryKeyConstraint("id", name="pk_calls"),
        sa.UniqueConstraint("cycle_id", "step", "position", name="uq_calls_cycle_id_step_position"),
    )
    waiting, shown = sa.text("state = 'waiting'"), sa.text("shown = 1")
    op.create_index("ix_calls_waiting", "calls", ["agent_id"], sqlite_where=waiting, postgresql_where=waiting)
    op.create_index("ix_calls_expiring", "calls", ["expires_at"], sqlite_where=waiting, postgresql_where=waiting)
    op.create_index("ix_calls_space", "calls", ["space_id", "after_seq"], sqlite_where=shown, postgresql_where=shown)


def _secrets_and_webhooks() -> None:
    op.create_table(
        "secrets",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("organization_id", sa.Text, nullable=False),
        sa.Column("owner_id", sa.Text, server_default="", nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("hint", sa.Text, nullable=False),
        integer("created_at"),
        integer("updated_at"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_secrets_organization_id"),
        sa.PrimaryKeyConstraint("id", name="pk_secrets"),
        sa.UniqueConstraint("organization_id", "owner_id", "name", name="uq_secrets_organization_id_owner_id_name"),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scheme", sa.Text, nullable=False),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("urgent", sa.SmallInteger, server_default=sa.text("0"), nullable=False),
        integer("created_at"),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("last_used_at", sa.BigInteger),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_webhooks_agent_id"),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
    )
    op.create_index("ix_webhooks_agent", "webhooks", ["agent_id"])


def _spending() -> None:
    op.create_table(
        "spending",
        sa.Column("organization_id", sa.Text, nullable=False),
        sa.Column("day", sa.Integer, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        integer("calls", 0),
        integer("input_tokens", 0),
        integer("output_tokens", 0),
        integer("cache_read_tokens", 0),
        integer("cache_write_tokens", 0),
        integer("cost_micros", 0),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_spending_organization_id"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_spending_agent_id"),
        sa.PrimaryKeyConstraint("organization_id", "day", "agent_id", "model", name="pk_spending"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_spending_agent", "spending", ["agent_id", "day"])
    # What was spent before there was this table.
    op.execute(
        f"""
        INSERT INTO spending (organization_id, day, agent_id, model, calls, input_tokens, output_tokens,
                              cache_read_tokens, cache_write_tokens, cost_micros)
        SELECT agents.organization_id, CAST(ledger.created_at / {_DAY} AS INTEGER), ledger.agent_id, ledger.model,
               COUNT(*), SUM(input_tokens), SUM(output_tokens), SUM(cache_read_tokens), SUM(cache_write_tokens),
               COALESCE(SUM(cost_micros), 0)
        FROM ledger JOIN agents ON agents.id = ledger.agent_id
        WHERE ledger.model IS NOT NULL
        GROUP BY 1, 2, 3, 4
        """  # noqa: S608
    )
    op.create_table(
        "reservations",
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("organization_id", sa.Text, nullable=False),
        integer("epoch"),
        integer("tokens"),
        integer("cost_micros"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_reservations_agent_id"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_reservations_organization_id"),
        sa.PrimaryKeyConstraint("agent_id", name="pk_reservations"),
    )
    op.create_index("ix_reservations_organization", "reservations", ["organization_id"])
