"""Panels: advisors, rounds, what each voice answers in them, and what that costs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

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
        _text("space_id"),
        _text("organization_id"),
        _text("settings", "{}"),
        _int("turns", 0),
        _int("created_at"),
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
        _text("id"),
        _text("space_id"),
        _int("position"),
        _text("handle"),
        _text("name"),
        _text("description", ""),
        _text("colour", ""),
        _text("in_group", ""),
        sa.Column("active", sa.SmallInteger, server_default=sa.text("1"), nullable=False),
        _text("settings", "{}"),
        _int("created_at"),
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
        _text("id"),
        _text("space_id"),
        _int("turn"),
        _int("step"),
        _text("kind"),
        _text("message_id"),
        _text("asked_by"),
        sa.Column("question", sa.Text),
        _text("state", "open"),
        _int("crosstalk", 0),
        sa.Column("synthesis", sa.SmallInteger, server_default=sa.text("0"), nullable=False),
        _int("created_at"),
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
        _text("round_id"),
        _text("voice"),
        _text("part"),
        _text("space_id"),
        _text("organization_id"),
        _int("position"),
        _text("name"),
        _text("state", "waiting"),
        sa.Column("holder", sa.Text),
        _int("epoch", 0),
        _int("until", 0),
        _int("attempts", 0),
        sa.Column("text", sa.Text),
        sa.Column("thinking", sa.Text),
        sa.Column("result", sa.Text),
        sa.Column("error_code", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("recipe", sa.Text),
        sa.Column("model", sa.Text),
        _int("input_tokens", 0),
        _int("output_tokens", 0),
        _int("cache_read_tokens", 0),
        _int("cache_write_tokens", 0),
        sa.Column("cost_micros", sa.BigInteger),
        _int("reserved_tokens", 0),
        _int("reserved_micros", 0),
        _int("created_at"),
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
        _text("organization_id"),
        sa.Column("day", sa.Integer, nullable=False),
        _text("space_id"),
        _text("model"),
        _int("calls", 0),
        _int("input_tokens", 0),
        _int("output_tokens", 0),
        _int("cache_read_tokens", 0),
        _int("cache_write_tokens", 0),
        _int("cost_micros", 0),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_panel_spending_organization_id"),
        sa.ForeignKeyConstraint(["space_id"], ["panels.space_id"], name="fk_panel_spending_space_id"),
        sa.PrimaryKeyConstraint("organization_id", "day", "space_id", "model", name="pk_panel_spending"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_panel_spending_space", "panel_spending", ["space_id", "day"])


def _text(name: str, default: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text, server_default=default, nullable=False)


def _int(name: str, default: int | None = None) -> sa.Column[int]:
    given = None if default is None else sa.text(str(default))
    return sa.Column(name, sa.BigInteger, server_default=given, nullable=False)
