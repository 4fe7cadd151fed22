"""Panels: advisors, rounds, what each voice answers in them, and what that costs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    _panels()
    _rounds()
    _replies()
    _spending()


def _panels() -> None:
    op.create_table(
        "panels",
        text("space_id"),
        text("organization_id"),
        text("settings", "{}"),
        integer("turns", 0),
        integer("created_at"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_panels_space_id"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_panels_organization_id"),
        sa.PrimaryKeyConstraint("space_id", name="pk_panels"),
    )
    # A space of this kind could be made before it answered.
    op.execute(
        "INSERT INTO panels (space_id, organization_id, settings, turns, created_at) "
        "SELECT id, organization_id, '{}', 0, created_at FROM spaces WHERE kind = 'panel'"
    )
    op.create_table(
        "advisors",
        text("id"),
        text("space_id"),
        integer("position"),
        text("handle"),
        text("name"),
        text("description", ""),
        text("colour", ""),
        text("in_group", ""),
        sa.Column("active", sa.SmallInteger, server_default=sa.text("1"), nullable=False),
        text("settings", "{}"),
        integer("created_at"),
        sa.Column("removed_at", sa.BigInteger),
        sa.ForeignKeyConstraint(["space_id"], ["panels.space_id"], name="fk_advisors_space_id"),
        sa.PrimaryKeyConstraint("id", name="pk_advisors"),
    )
    there = sa.text("removed_at IS NULL")
    op.create_index("ix_advisors_space", "advisors", ["space_id", "position"])
    op.create_index(
        "ix_advisors_handle",
        "advisors",
        ["space_id", "handle"],
        unique=True,
        sqlite_where=there,
        postgresql_where=there,
    )


def _rounds() -> None:
    op.create_table(
        "rounds",
        text("id"),
        text("space_id"),
        integer("turn"),
        integer("step"),
        text("kind"),
        text("message_id"),
        text("asked_by"),
        sa.Column("question", sa.Text),
        text("state", "open"),
        integer("crosstalk", 0),
        sa.Column("synthesis", sa.SmallInteger, server_default=sa.text("0"), nullable=False),
        integer("created_at"),
        sa.Column("completed_at", sa.BigInteger),
        sa.ForeignKeyConstraint(["space_id"], ["panels.space_id"], name="fk_rounds_space_id"),
        sa.PrimaryKeyConstraint("id", name="pk_rounds"),
        sa.UniqueConstraint("space_id", "turn", "step", name="uq_rounds_space_id_turn_step"),
    )
    unfinished = sa.text("state = 'open'")
    op.create_index(
        "ix_rounds_open", "rounds", ["space_id", "turn"], sqlite_where=unfinished, postgresql_where=unfinished
    )
    op.create_index("ix_rounds_message", "rounds", ["message_id"])


def _replies() -> None:
    op.create_table(
        "replies",
        text("round_id"),
        text("voice"),
        text("part"),
        text("space_id"),
        text("organization_id"),
        integer("position"),
        text("name"),
        text("state", "waiting"),
        sa.Column("holder", sa.Text),
        integer("epoch", 0),
        integer("until", 0),
        integer("attempts", 0),
        sa.Column("text", sa.Text),
        sa.Column("thinking", sa.Text),
        sa.Column("result", sa.Text),
        sa.Column("error_code", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("recipe", sa.Text),
        sa.Column("model", sa.Text),
        integer("input_tokens", 0),
        integer("output_tokens", 0),
        integer("cache_read_tokens", 0),
        integer("cache_write_tokens", 0),
        sa.Column("cost_micros", sa.BigInteger),
        integer("reserved_tokens", 0),
        integer("reserved_micros", 0),
        integer("created_at"),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_replies_round_id"),
        sa.ForeignKeyConstraint(["space_id"], ["panels.space_id"], name="fk_replies_space_id"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_replies_organization_id"),
        sa.PrimaryKeyConstraint("round_id", "voice", "part", name="pk_replies"),
    )
    unfinished, answered = sa.text("state IN ('waiting', 'running')"), sa.text("state = 'done'")
    op.create_index(
        "ix_replies_unfinished", "replies", ["created_at"], sqlite_where=unfinished, postgresql_where=unfinished
    )
    op.create_index(
        "ix_replies_voice", "replies", ["space_id", "voice", "part"], sqlite_where=answered, postgresql_where=answered
    )


def _spending() -> None:
    op.create_table(
        "panel_spending",
        text("organization_id"),
        sa.Column("day", sa.Integer, nullable=False),
        text("space_id"),
        text("model"),
        integer("calls", 0),
        integer("input_tokens", 0),
        integer("output_tokens", 0),
        integer("cache_read_tokens", 0),
        integer("cache_write_tokens", 0),
        integer("cost_micros", 0),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_panel_spending_organization_id"),
        sa.ForeignKeyConstraint(["space_id"], ["panels.space_id"], name="fk_panel_spending_space_id"),
        sa.PrimaryKeyConstraint("organization_id", "day", "space_id", "model", name="pk_panel_spending"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_panel_spending_space", "panel_spending", ["space_id", "day"])
