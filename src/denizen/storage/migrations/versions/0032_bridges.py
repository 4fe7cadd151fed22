"""Rooms elsewhere are bound to spaces, and accounts elsewhere to people."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    op.add_column("spaces", sa.Column("bridged", sa.SmallInteger, nullable=False, server_default=sa.text("0")))
    _bridges_and_channels()
    _addresses()
    _carried_and_outbox()


def _bridges_and_channels() -> None:
    op.create_table(
        "bridges",
        text("id"),
        text("organization_id"),
        text("entity_id"),
        text("kind"),
        text("settings", "{}"),
        sa.Column("sealed", sa.Text),
        sa.Column("parked_reason", sa.Text),
        sa.Column("parked_until", sa.BigInteger),
        sa.Column("error", sa.Text),
        sa.Column("error_at", sa.BigInteger),
        sa.Column("connected_at", sa.BigInteger),
        sa.Column("holder", sa.Text),
        integer("epoch", 0),
        integer("until", 0),
        integer("created_at"),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_bridges_organization_id"),
        sa.ForeignKeyConstraint(["entity_id"], ["entities.id"], name="fk_bridges_entity_id"),
        sa.PrimaryKeyConstraint("id", name="pk_bridges"),
    )
    op.create_index("ix_bridges_organization", "bridges", ["organization_id"])
    op.create_index("ix_bridges_entity", "bridges", ["entity_id"])
    op.create_table(
        "channels",
        text("id"),
        text("bridge_id"),
        text("space_id"),
        text("room"),
        sa.Column("cursor", sa.Text),
        integer("created_at"),
        sa.ForeignKeyConstraint(["bridge_id"], ["bridges.id"], name="fk_channels_bridge_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_channels_space_id"),
        sa.PrimaryKeyConstraint("id", name="pk_channels"),
        sa.UniqueConstraint("bridge_id", "room", name="uq_channels_bridge_id_room"),
    )
    op.create_index("ix_channels_space", "channels", ["space_id"])


def _addresses() -> None:
    op.create_table(
        "addresses",
        text("bridge_id"),
        text("account"),
        text("guest_id"),
        sa.Column("person_id", sa.Text),
        sa.Column("linked_at", sa.BigInteger),
        sa.Column("code", sa.Text),
        sa.Column("code_for", sa.Text),
        sa.Column("code_until", sa.BigInteger),
        integer("code_tries", 0),
        integer("created_at"),
        sa.ForeignKeyConstraint(["bridge_id"], ["bridges.id"], name="fk_addresses_bridge_id"),
        sa.ForeignKeyConstraint(["guest_id"], ["entities.id"], name="fk_addresses_guest_id"),
        sa.ForeignKeyConstraint(["person_id"], ["entities.id"], name="fk_addresses_person_id"),
        sa.ForeignKeyConstraint(["code_for"], ["entities.id"], name="fk_addresses_code_for"),
        sa.PrimaryKeyConstraint("bridge_id", "account", name="pk_addresses"),
        sqlite_with_rowid=False,
    )
    linked = sa.text("person_id IS NOT NULL")
    op.create_index("ix_addresses_guest", "addresses", ["guest_id"])
    op.create_index("ix_addresses_person", "addresses", ["person_id"], sqlite_where=linked, postgresql_where=linked)


def _carried_and_outbox() -> None:
    op.create_table(
        "carried",
        text("channel_id"),
        text("outside_id"),
        sa.Column("message_id", sa.Text),
        sa.Column("emoji", sa.Text),
        text("direction"),
        integer("created_at"),
        sa.ForeignKeyConstraint(["channel_id"], ["channels.id"], name="fk_carried_channel_id"),
        sa.ForeignKeyConstraint(["message_id"], ["messages.id"], name="fk_carried_message_id"),
        sa.PrimaryKeyConstraint("channel_id", "outside_id", name="pk_carried"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_carried_message", "carried", ["message_id"])
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "outbox",
        sa.Column("number", number, primary_key=True, autoincrement=True),
        text("bridge_id"),
        sa.Column("channel_id", sa.Text),
        text("target"),
        sa.Column("message_id", sa.Text),
        text("action"),
        text("transaction_id"),
        sa.Column("detail", sa.Text),
        integer("tries", 0),
        integer("next_at", 0),
        sa.Column("failed", sa.Text),
        integer("created_at"),
        sa.ForeignKeyConstraint(["bridge_id"], ["bridges.id"], name="fk_outbox_bridge_id"),
        sa.ForeignKeyConstraint(["channel_id"], ["channels.id"], name="fk_outbox_channel_id"),
        sa.ForeignKeyConstraint(["message_id"], ["messages.id"], name="fk_outbox_message_id"),
        sa.PrimaryKeyConstraint("number", name="pk_outbox"),
    )
    waiting = sa.text("failed IS NULL")
    op.create_index(
        "ix_outbox_waiting", "outbox", ["bridge_id", "target", "number"], sqlite_where=waiting, postgresql_where=waiting
    )
    op.create_index("ix_outbox_message", "outbox", ["message_id"])
    op.create_index("ix_outbox_channel", "outbox", ["channel_id"])
