"""What Alembic runs for every command: the steps, on the connection that it was handed, inside its transaction."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
