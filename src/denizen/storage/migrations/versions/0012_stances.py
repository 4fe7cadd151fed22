"""How agents stand to their conversations: profiles, states of mind, and what moved them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def _text(name: str, default: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default=default)


def _int(name: str, default: int | None = None) -> sa.Column[int]:
    given = None if default is None else sa.text(str(default))
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=given)


def _of(table: str, *columns: tuple[str, str]) -> list[sa.ForeignKeyConstraint]:
    return [
        sa.ForeignKeyConstraint([column], [f"{target}.id"], name=f"fk_{table}_{column}") for column, target in columns
    ]


_AGENT, _SPACE = ("agent_id", "agents"), ("space_id", "spaces")


def upgrade() -> None:
    op.create_table(
        "stances",
        _text("agent_id"),
        _text("space_id"),
        _int("turns", 0),
        _int("reviewed_turn", 0),
        sa.Column("review_asked", sa.SmallInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("preset", sa.Text),
        _text("preset_reason", ""),
        sa.Column("profile_line", sa.Text),
        _int("reflected_turns", 0),
        _text("mood", "neutral"),
        _text("skill", "unknown"),
        _text("complexity", "unknown"),
        sa.Column("mind_line", sa.Text),
        _text("imprints", "{}"),
        sa.Column("overrides", sa.Text),
        _int("updated_at"),
        *_of("stances", _AGENT, _SPACE),
        sa.PrimaryKeyConstraint("agent_id", "space_id", name="pk_stances"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "feelings",
        _text("agent_id"),
        _text("space_id"),
        _text("person_id"),
        _text("counters"),
        _int("updated_at"),
        *_of("feelings", _AGENT, _SPACE, ("person_id", "entities")),
        sa.PrimaryKeyConstraint("agent_id", "space_id", "person_id", name="pk_feelings"),
        sqlite_with_rowid=False,
    )
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "signals",
        sa.Column("number", number, autoincrement=True, nullable=False),
        _text("agent_id"),
        _text("space_id"),
        sa.Column("person_id", sa.Text),
        _int("cycle"),
        _text("name"),
        _text("rule"),
        sa.Column("score", sa.BigInteger),
        _int("created_at"),
        *_of("signals", _AGENT, _SPACE),
        sa.PrimaryKeyConstraint("number", name="pk_signals"),
    )
    op.create_index("ix_signals_stance", "signals", ["agent_id", "space_id", "number"])
    op.create_table(
        "reflections",
        sa.Column("number", number, autoincrement=True, nullable=False),
        _text("agent_id"),
        _text("space_id"),
        sa.Column("cycle", sa.BigInteger),
        sa.Column("metaprompt", sa.Text),
        _text("cause"),
        _text("outcome"),
        _text("reason", ""),
        _text("state"),
        sa.Column("by_id", sa.Text),
        _int("created_at"),
        *_of("reflections", _AGENT, _SPACE),
        sa.PrimaryKeyConstraint("number", name="pk_reflections"),
    )
    op.create_index("ix_reflections_stance", "reflections", ["agent_id", "space_id", "number"])
    op.create_table(
        "reflecting",
        _text("agent_id"),
        _int("cycle", 0),
        *_of("reflecting", _AGENT),
        sa.PrimaryKeyConstraint("agent_id", name="pk_reflecting"),
    )
