"""Compiles SQLAlchemy expressions to the SQL text that the drivers take.

Values that are not bind parameters are written into the text: a planner uses a partial index only if it can see that
the index's condition holds. Each statement is compiled once per process.
"""

from __future__ import annotations

import re
from typing import Any, cast

from sqlalchemy import BindParameter, Insert
from sqlalchemy.dialects.postgresql.base import PGCompiler
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement


def sqlite_sql(expression: Executable) -> str:
    """Compiles for SQLite, with parameters like `:name`."""
    return str(_compiled(expression, _SQLITE))


def sqlite_numbered_sql(expression: Executable) -> tuple[str, tuple[str, ...]]:
    """Compiles for SQLite, with parameters like `?1`; returns their names in that order as well."""
    compiled = _compiled(expression, _SQLITE_NUMBERED)
    return _NUMBERED.sub(r"?\1", str(compiled)), tuple(compiled.positiontup or ())


def postgresql_sql(expression: Executable) -> tuple[str, tuple[str, ...]]:
    """Compiles for PostgreSQL, with parameters like `$1`, each with a cast to its type; returns the names of the
    parameters in that order as well.
    """
    compiled = _compiled(expression, _POSTGRESQL)
    return str(compiled), tuple(compiled.positiontup or ())


def _compiled(expression: Executable, dialect: Any) -> SQLCompiler:
    # A plain insert would get a RETURNING clause for its generated key, which is not used.
    if isinstance(expression, Insert) and not expression.exported_columns:
        expression = expression.inline()
    assert isinstance(expression, ClauseElement)
    compiled = expression.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)
    return compiled


def _is_given(bind: BindParameter[Any]) -> bool:
    return not bind.required


class _SqliteText(SQLiteCompiler):
    def visit_bindparam(self, bindparam: BindParameter[Any], *args: Any, **kw: Any) -> str:
        if _is_given(bindparam):
            kw["literal_binds"] = True
        return cast("str", super().visit_bindparam(bindparam, *args, **kw))  # pyright: ignore[reportUnknownMemberType]


class _PostgresqlText(PGCompiler):
    def visit_bindparam(self, bindparam: BindParameter[Any], *args: Any, **kw: Any) -> str:
        if _is_given(bindparam):
            kw["literal_binds"] = True
        return cast("str", super().visit_bindparam(bindparam, *args, **kw))  # pyright: ignore[reportUnknownMemberType]


class _SqliteDialect(SQLiteDialect_pysqlite):
    statement_compiler = _SqliteText
    supports_statement_cache = True


class _PsycopgDialect(PGDialect_psycopg):
    statement_compiler = _PostgresqlText
    supports_statement_cache = True


_SQLITE = _SqliteDialect(paramstyle="named")
_SQLITE_NUMBERED = _SqliteDialect(paramstyle="numeric_dollar")
_NUMBERED = re.compile(r"\$(\d+)")
_POSTGRESQL = _PsycopgDialect(paramstyle="numeric_dollar")
