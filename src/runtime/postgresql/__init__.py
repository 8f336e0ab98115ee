"""PostgreSQL as the platform uses it: schema, statements, sessions, notifications."""
