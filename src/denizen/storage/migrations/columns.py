"""Required columns that migrations add. Migrations of released versions use them: never change what they mean."""

from __future__ import annotations

import sqlalchemy as sa


def text(name: str, default: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default=default)


def integer(name: str, default: int | None = None) -> sa.Column[int]:
    given = None if default is None else sa.text(str(default))
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=given)
