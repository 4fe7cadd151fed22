"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# SQLite numbers rows by itself only where the type is exactly INTEGER.
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "effects",
        sa.Column("cycle_id", sa.Text, nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("changes", sa.SmallInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("result", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("cycle_id", "step", "position", name="pk_effects"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "instances",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_instances"),
    )
    op.create_table(
        "organizations",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, server_default="{}", nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_organizations"),
    )
    op.create_table(
        "toolsets",
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("tools", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_toolsets"),
    )
    op.create_table(
        "entities",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("organization_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("handle", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("metadata", sa.Text, server_default="{}", nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_entities_organization_id"),
        sa.PrimaryKeyConstraint("id", name="pk_entities"),
        sa.UniqueConstraint("organization_id", "handle", name="uq_entities_organization_id_handle"),
    )
    op.create_table(
        "spaces",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("organization_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("private", sa.SmallInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("last_seq", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_spaces_organization_id"),
        sa.PrimaryKeyConstraint("id", name="pk_spaces"),
    )
    op.create_table(
        "agents",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("organization_id", sa.Text, nullable=False),
        sa.Column("status", sa.Text, server_default="active", nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, server_default=sa.text("1"), nullable=False),
        sa.Column("urgent", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["id"], ["entities.id"], name="fk_agents_id"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_agents_organization_id"),
        sa.PrimaryKeyConstraint("id", name="pk_agents"),
    )
    op.create_table(
        "memberships",
        sa.Column("space_id", sa.Text, nullable=False),
        sa.Column("entity_id", sa.Text, nullable=False),
        sa.Column("role", sa.Text, server_default="member", nullable=False),
        sa.Column("attention", sa.Text, server_default="all", nullable=False),
        sa.Column("joined_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["entity_id"], ["entities.id"], name="fk_memberships_entity_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_memberships_space_id"),
        sa.PrimaryKeyConstraint("space_id", "entity_id", name="pk_memberships"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_memberships_entity", "memberships", ["entity_id"], unique=False)
    op.create_table(
        "messages",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("space_id", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("author_id", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("plain", sa.Text),
        sa.Column("mentions", sa.Text),
        sa.Column("reply_to", sa.Text),
        sa.Column("metadata", sa.Text),
        sa.Column("hop", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("cycle_id", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["author_id"], ["entities.id"], name="fk_messages_author_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_messages_space_id"),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
        sa.UniqueConstraint("space_id", "seq", name="uq_messages_space_id_seq"),
    )
    op.create_table(
        "cycles",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger),
        sa.Column("outcome", sa.Text, server_default="open", nullable=False),
        sa.Column("first_seq", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("steps", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("attempts", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("not_before", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("handed_back", sa.SmallInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("active_space_id", sa.Text),
        sa.Column("stop_reason", sa.Text),
        sa.Column("summary", sa.Text),
        sa.Column("told", sa.Text),
        sa.Column("input_tokens", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("output_tokens", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("cost_micros", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_cycles_agent_id"),
        sa.PrimaryKeyConstraint("id", name="pk_cycles"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_cycles_number",
        "cycles",
        ["agent_id", "number"],
        unique=True,
        sqlite_where=sa.text("number IS NOT NULL"),
        postgresql_where=sa.text("number IS NOT NULL"),
    )
    op.create_index(
        "ix_cycles_open",
        "cycles",
        ["agent_id"],
        unique=True,
        sqlite_where=sa.text("number IS NULL"),
        postgresql_where=sa.text("number IS NULL"),
    )
    op.create_table(
        "events",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("lane", sa.SmallInteger, server_default=sa.text("1"), nullable=False),
        sa.Column("state", sa.Text, server_default="pending", nullable=False),
        sa.Column("wakes", sa.SmallInteger, server_default=sa.text("1"), nullable=False),
        sa.Column("hop", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("attempts", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("not_before", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("cycle_id", sa.Text),
        sa.Column("space_id", sa.Text),
        sa.Column("message_id", sa.Text),
        sa.Column("payload", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_events_agent_id"),
        sa.PrimaryKeyConstraint("number", name="pk_events"),
    )
    op.create_index(
        "ix_events_id",
        "events",
        ["agent_id", "id"],
        unique=True,
        sqlite_where=sa.text("message_id IS NULL"),
        postgresql_where=sa.text("message_id IS NULL"),
    )
    op.create_index(
        "ix_events_open",
        "events",
        ["agent_id", "state", "lane", "number"],
        unique=False,
        sqlite_where=sa.text("state <> 'done'"),
        postgresql_where=sa.text("state <> 'done'"),
    )
    op.create_table(
        "leases",
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("holder", sa.Text),
        sa.Column("epoch", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("until", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_leases_agent_id"),
        sa.PrimaryKeyConstraint("agent_id", name="pk_leases"),
    )
    op.create_index(
        "ix_leases_held",
        "leases",
        ["holder"],
        unique=False,
        sqlite_where=sa.text("holder IS NOT NULL"),
        postgresql_where=sa.text("holder IS NOT NULL"),
    )
    op.create_table(
        "ledger",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("cycle_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("model", sa.Text),
        sa.Column("input_tokens", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("output_tokens", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("cache_read_tokens", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("cache_write_tokens", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("cost_micros", sa.BigInteger),
        sa.Column("detail", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_ledger_agent_id"),
        sa.PrimaryKeyConstraint("number", name="pk_ledger"),
    )
    op.create_table(
        "log",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("cycle_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("request", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_log_agent_id"),
        sa.PrimaryKeyConstraint("number", name="pk_log"),
        sa.UniqueConstraint("agent_id", "seq", name="uq_log_agent_id_seq"),
    )
    op.create_table(
        "minds",
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("cycle_count", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("last_cycle_at", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("window_from", sa.BigInteger, server_default=sa.text("1"), nullable=False),
        sa.Column("era", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("era_version", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("news", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("news_told", sa.BigInteger, server_default=sa.text("0"), nullable=False),
        sa.Column("told", sa.Text, server_default="{}", nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_minds_agent_id"),
        sa.PrimaryKeyConstraint("agent_id", name="pk_minds"),
    )
    op.create_table(
        "overflow",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("cycle_id", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_overflow_agent_id"),
        sa.PrimaryKeyConstraint("id", name="pk_overflow"),
    )
    op.create_table(
        "selves",
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("era", sa.BigInteger, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_selves_agent_id"),
        sa.PrimaryKeyConstraint("agent_id", "era", name="pk_selves"),
    )
