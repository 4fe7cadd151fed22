"""Pictures are described, people have a picture, and files from before 0024 are read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from denizen.storage.migrations.columns import integer, text

revision = "0033"
down_revision = "0032"

_TYPES = (
    "application/pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.ms-excel",
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/xhtml+xml",
    "text/html",
    "message/rfc822",
    "image/avif",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/webp",
)
_SUFFIXES = ("pdf", "docx", "pptx", "xlsx", "xls", "ods", "htm", "html", "eml")


def upgrade() -> None:
    op.add_column("files", sa.Column("alt", sa.Text))
    op.create_table(
        "entity_pictures",
        text("entity_id"),
        text("link_key"),
        sa.Column("data", sa.LargeBinary, nullable=False),
        integer("created_at"),
        sa.ForeignKeyConstraint(["entity_id"], ["entities.id"], name="fk_entity_pictures_entity_id"),
        sa.PrimaryKeyConstraint("entity_id", name="pk_entity_pictures"),
    )
    # Files that were uploaded before files were read: the servers read them in the background.
    contents = sa.table("contents", *map(sa.column, ("id", "reading", "digest", "dropped_at")))
    files = sa.table("files", *map(sa.column, ("content_id", "name", "media_type")))
    pages = sa.table("file_pages", sa.column("content_id"))
    named = [sa.func.lower(files.c.name).like(f"%.{each}") for each in _SUFFIXES]
    op.execute(
        contents.update()
        .where(
            contents.c.reading.is_(None),
            contents.c.digest.is_not(None),
            contents.c.dropped_at.is_(None),
            contents.c.id.not_in(sa.select(pages.c.content_id)),
            contents.c.id.in_(sa.select(files.c.content_id).where(sa.or_(files.c.media_type.in_(_TYPES), *named))),
        )
        .values(reading="waiting")
    )
    # And what agents have heard of them becomes recallable.
    op.execute(
        "INSERT INTO heard_files (agent_id, file_id, cycle, next_page) "
        "SELECT events.agent_id, files.id, min(cycles.number), 1 FROM files "
        "JOIN events ON events.message_id = files.message_id "
        "JOIN cycles ON cycles.id = events.cycle_id "
        "WHERE cycles.number IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM passages "
        "WHERE passages.file_id = files.id AND passages.agent_id = events.agent_id) "
        "AND NOT EXISTS (SELECT 1 FROM heard_files AS known "
        "WHERE known.file_id = files.id AND known.agent_id = events.agent_id) "
        "GROUP BY events.agent_id, files.id"
    )
