#!/bin/sh
# Run by the postgres image on an empty volume: one role and its databases for the platform, one
# for Temporal, so that neither can read the other's.
set -eu
: "${WORKSPACE_DATABASE_PASSWORD:?}" "${TEMPORAL_DATABASE_PASSWORD:?}"

psql --username "$POSTGRES_USER" --set ON_ERROR_STOP=1 \
    --set platform="$WORKSPACE_DATABASE_PASSWORD" --set engine="$TEMPORAL_DATABASE_PASSWORD" <<'SQL'
CREATE ROLE workspace LOGIN PASSWORD :'platform';
CREATE ROLE temporal LOGIN PASSWORD :'engine';
CREATE DATABASE workspace OWNER workspace;
CREATE DATABASE temporal OWNER temporal;
CREATE DATABASE temporal_visibility OWNER temporal;
REVOKE CONNECT ON DATABASE workspace, temporal, temporal_visibility FROM PUBLIC;
SQL
