"""The database: schema, migrations, transactions; SQLite and PostgreSQL."""
