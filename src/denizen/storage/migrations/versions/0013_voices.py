"""States of mind of the voices of panels, and what moved them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0013"
down_revision = "0012"


def _panel(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["space_id"], ["panels.space_id"], name=f"fk_{table}_space_id")


def upgrade() -> None:
    op.create_table(
        "voice_stances",
        text("space_id"),
        text("voice"),
        integer("reflected_turns", 0),
        text("mood", "neutral"),
        text("skill", "unknown"),
        text("complexity", "unknown"),
        sa.Column("mind_line", sa.Text),
        text("imprints", "{}"),
        integer("updated_at"),
        _panel("voice_stances"),
        sa.PrimaryKeyConstraint("space_id", "voice", name="pk_voice_stances"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "voice_feelings",
        text("space_id"),
        text("voice"),
        text("person_id"),
        text("counters"),
        integer("updated_at"),
        _panel("voice_feelings"),
        sa.ForeignKeyConstraint(["person_id"], ["entities.id"], name="fk_voice_feelings_person_id"),
        sa.PrimaryKeyConstraint("space_id", "voice", "person_id", name="pk_voice_feelings"),
        sqlite_with_rowid=False,
    )
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "voice_signals",
        sa.Column("number", number, autoincrement=True, nullable=False),
        text("space_id"),
        text("voice"),
        sa.Column("person_id", sa.Text),
        integer("turn"),
        text("name"),
        text("rule"),
        sa.Column("score", sa.BigInteger),
        integer("created_at"),
        _panel("voice_signals"),
        sa.PrimaryKeyConstraint("number", name="pk_voice_signals"),
    )
    op.create_index("ix_voice_signals_stance", "voice_signals", ["space_id", "voice", "number"])
    op.create_table(
        "voice_reflections",
        sa.Column("number", number, autoincrement=True, nullable=False),
        text("space_id"),
        text("voice"),
        sa.Column("turn", sa.BigInteger),
        sa.Column("metaprompt", sa.Text),
        text("cause"),
        text("outcome"),
        text("reason", ""),
        text("state"),
        sa.Column("by_id", sa.Text),
        integer("created_at"),
        _panel("voice_reflections"),
        sa.PrimaryKeyConstraint("number", name="pk_voice_reflections"),
    )
    op.create_index("ix_voice_reflections_stance", "voice_reflections", ["space_id", "voice", "number"])
    op.create_table(
        "panel_reflecting",
        text("space_id"),
        integer("turn", 0),
        _panel("panel_reflecting"),
        sa.PrimaryKeyConstraint("space_id", name="pk_panel_reflecting"),
    )
