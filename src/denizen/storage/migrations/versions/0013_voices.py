"""States of mind of the voices of panels, and what moved them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def _text(name: str, default: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default=default)


def _int(name: str, default: int | None = None) -> sa.Column[int]:
    given = None if default is None else sa.text(str(default))
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=given)


def _panel(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["space_id"], ["panels.space_id"], name=f"fk_{table}_space_id")


def upgrade() -> None:
    op.create_table(
        "voice_stances",
        _text("space_id"),
        _text("voice"),
        _int("reflected_turns", 0),
        _text("mood", "neutral"),
        _text("skill", "unknown"),
        _text("complexity", "unknown"),
        sa.Column("mind_line", sa.Text),
        _text("imprints", "{}"),
        _int("updated_at"),
        _panel("voice_stances"),
        sa.PrimaryKeyConstraint("space_id", "voice", name="pk_voice_stances"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "voice_feelings",
        _text("space_id"),
        _text("voice"),
        _text("person_id"),
        _text("counters"),
        _int("updated_at"),
        _panel("voice_feelings"),
        sa.ForeignKeyConstraint(["person_id"], ["entities.id"], name="fk_voice_feelings_person_id"),
        sa.PrimaryKeyConstraint("space_id", "voice", "person_id", name="pk_voice_feelings"),
        sqlite_with_rowid=False,
    )
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "voice_signals",
        sa.Column("number", number, autoincrement=True, nullable=False),
        _text("space_id"),
        _text("voice"),
        sa.Column("person_id", sa.Text),
        _int("turn"),
        _text("name"),
        _text("rule"),
        sa.Column("score", sa.BigInteger),
        _int("created_at"),
        _panel("voice_signals"),
        sa.PrimaryKeyConstraint("number", name="pk_voice_signals"),
    )
    op.create_index("ix_voice_signals_stance", "voice_signals", ["space_id", "voice", "number"])
    op.create_table(
        "voice_reflections",
        sa.Column("number", number, autoincrement=True, nullable=False),
        _text("space_id"),
        _text("voice"),
        sa.Column("turn", sa.BigInteger),
        sa.Column("metaprompt", sa.Text),
        _text("cause"),
        _text("outcome"),
        _text("reason", ""),
        _text("state"),
        sa.Column("by_id", sa.Text),
        _int("created_at"),
        _panel("voice_reflections"),
        sa.PrimaryKeyConstraint("number", name="pk_voice_reflections"),
    )
    op.create_index("ix_voice_reflections_stance", "voice_reflections", ["space_id", "voice", "number"])
    op.create_table(
        "panel_reflecting",
        _text("space_id"),
        _int("turn", 0),
        _panel("panel_reflecting"),
        sa.PrimaryKeyConstraint("space_id", name="pk_panel_reflecting"),
    )
