"""Web push: the server's key, the browsers of people, and what they are to be told of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    op.add_column("memberships", sa.Column("notified_seq", sa.BigInteger, nullable=False, server_default=sa.text("0")))
    op.create_table(
        "server_keys",
        text("name"),
        text("sealed"),
        integer("created_at"),
        sa.PrimaryKeyConstraint("name", name="pk_server_keys"),
    )
    op.create_table(
        "push_subscriptions",
        text("id"),
        text("entity_id"),
        text("token_id"),
        text("endpoint"),
        text("p256dh"),
        text("auth"),
        integer("created_at"),
        sa.ForeignKeyConstraint(["entity_id"], ["entities.id"], name="fk_push_subscriptions_entity_id"),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name="fk_push_subscriptions_token_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_push_subscriptions"),
        sa.UniqueConstraint("endpoint", name="uq_push_subscriptions_endpoint"),
    )
    op.create_index("ix_push_subscriptions_entity", "push_subscriptions", ["entity_id"])
    op.create_index("ix_push_subscriptions_token", "push_subscriptions", ["token_id"])
    op.create_table(
        "push_notices",
        text("subscription_id"),
        text("subject_id"),
        text("kind"),
        integer("tries", 0),
        integer("next_at"),
        sa.Column("done_at", sa.BigInteger),
        integer("created_at"),
        sa.ForeignKeyConstraint(
            ["subscription_id"],
            ["push_subscriptions.id"],
            name="fk_push_notices_subscription_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("subscription_id", "subject_id", name="pk_push_notices"),
        sqlite_with_rowid=False,
    )
