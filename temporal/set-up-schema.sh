#!/bin/sh
# Brings Temporal's two databases to this server's schema; safe to run again.
# Needs temporal-sql-tool, SQL_HOST, SQL_USER and SQL_PASSWORD.
set -eu
: "${SQL_HOST:?}" "${SQL_USER:?}" "${SQL_PASSWORD:?}"
schemas=/etc/temporal/schema/postgresql/v12

migrate() {
    tool="temporal-sql-tool --plugin postgres12 --ep $SQL_HOST -p 5432 -u $SQL_USER --db $1"
    # Fails where the version tables are there already; without them the update below fails.
    $tool setup-schema -v 0.0 || echo "$1 has its version tables."
    $tool update-schema -d "$schemas/$2/versioned"
}

migrate temporal temporal
migrate temporal_visibility visibility
