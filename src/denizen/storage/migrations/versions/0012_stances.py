"""How agents stand to their conversations: profiles, states of mind, and what moved them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0012"
down_revision = "0011"


def _of(table: str, *columns: tuple[str, str]) -> list[sa.ForeignKeyConstraint]:
    return [
        sa.ForeignKeyConstraint([column], [f"{target}.id"], name=f"fk_{table}_{column}") for column, target in columns
    ]


_AGENT, _SPACE = ("agent_id", "agents"), ("space_id", "spaces")


def upgrade() -> None:
    op.create_table(
        "stances",
        text("agent_id"),
        text("space_id"),
        integer("turns", 0),
        integer("reviewed_turn", 0),
        sa.Column("review_asked", sa.SmallInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("preset", sa.Text),
        text("preset_reason", ""),
        sa.Column("profile_line", sa.Text),
        integer("reflected_turns", 0),
        text("mood", "neutral"),
        text("skill", "unknown"),
        text("complexity", "unknown"),
        sa.Column("mind_line", sa.Text),
        text("imprints", "{}"),
        sa.Column("overrides", sa.Text),
        integer("updated_at"),
        *_of("stances", _AGENT, _SPACE),
        sa.PrimaryKeyConstraint("agent_id", "space_id", name="pk_stances"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "feelings",
        text("agent_id"),
        text("space_id"),
        text("person_id"),
        text("counters"),
        integer("updated_at"),
        *_of("feelings", _AGENT, _SPACE, ("person_id", "entities")),
        sa.PrimaryKeyConstraint("agent_id", "space_id", "person_id", name="pk_feelings"),
        sqlite_with_rowid=False,
    )
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "signals",
        sa.Column("number", number, autoincrement=True, nullable=False),
        text("agent_id"),
        text("space_id"),
        sa.Column("person_id", sa.Text),
        integer("cycle"),
        text("name"),
        text("rule"),
        sa.Column("score", sa.BigInteger),
        integer("created_at"),
        *_of("signals", _AGENT, _SPACE),
        sa.PrimaryKeyConstraint("number", name="pk_signals"),
    )
    op.create_index("ix_signals_stance", "signals", ["agent_id", "space_id", "number"])
    op.create_table(
        "reflections",
        sa.Column("number", number, autoincrement=True, nullable=False),
        text("agent_id"),
        text("space_id"),
        sa.Column("cycle", sa.BigInteger),
        sa.Column("metaprompt", sa.Text),
        text("cause"),
        text("outcome"),
        text("reason", ""),
        text("state"),
        sa.Column("by_id", sa.Text),
        integer("created_at"),
        *_of("reflections", _AGENT, _SPACE),
        sa.PrimaryKeyConstraint("number", name="pk_reflections"),
    )
    op.create_index("ix_reflections_stance", "reflections", ["agent_id", "space_id", "number"])
    op.create_table(
        "reflecting",
        text("agent_id"),
        integer("cycle", 0),
        *_of("reflecting", _AGENT),
        sa.PrimaryKeyConstraint("agent_id", name="pk_reflecting"),
    )
