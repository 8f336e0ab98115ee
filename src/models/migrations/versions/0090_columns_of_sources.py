"""The columns that sources were read with (ADR 0125).

What a source was last read as is what its last run that succeeded says of it. Of earlier runs
nothing is known: a field that only they filled keeps its values.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0090"
down_revision = "0088"
branch_labels = None
depends_on = None

LAST_READ = """
INSERT INTO source_columns (workspace_id, source_id, database_id, columns, headers, config)
SELECT run.workspace_id, run.source_id, run.database_id, filled.columns,
    CASE WHEN run.plan -> 'fields' = '[]' THEN filled.headers ELSE '[]' END, ''
FROM (
    SELECT DISTINCT ON (workspace_id, source_id) *
    FROM (
        SELECT workspace_id, plan, progress, created_at,
            coalesce(data_source_id, (plan ->> 'sourceId')::uuid) AS source_id,
            coalesce(database_id, (result ->> 'databaseId')::uuid) AS database_id
        FROM data_source_run
        WHERE status = 'succeeded' AND reverted_at IS NULL AND progress ? 'mapping'
    ) AS ended
    WHERE source_id IS NOT NULL AND database_id IS NOT NULL
    ORDER BY workspace_id, source_id, created_at DESC
) AS run
CROSS JOIN LATERAL (
    SELECT jsonb_agg(jsonb_build_object(
            'source_path', one ->> 'sourcePath', 'field_key', one ->> 'fieldKey',
            'label', one ->> 'label', 'field_id', field.id, 'found', true,
            'kind', CASE WHEN run.plan -> 'fields' = '[]' THEN one ->> 'kind' END
        )) AS columns,
        jsonb_agg(one ->> 'sourcePath') AS headers
    FROM jsonb_array_elements(run.progress -> 'mapping') AS one
    JOIN field ON field.workspace_id = run.workspace_id
        AND field.database_id = run.database_id AND field.key = one ->> 'fieldKey'
) AS filled
WHERE filled.columns IS NOT NULL
"""


def upgrade() -> None:
    op.create_table(
        "source_columns",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("source_id", sa.Uuid(), nullable=False),
        sa.Column("database_id", sa.Uuid(), nullable=False),
        sa.Column("columns", postgresql.JSONB(), nullable=False),
        sa.Column("headers", postgresql.JSONB(), nullable=False),
        sa.Column("config", sa.String(), nullable=False),
        sa.Column("json_path", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("workspace_id", "source_id", name=op.f("pk_source_columns")),
    )
    op.execute(LAST_READ)


def downgrade() -> None:
    op.drop_table("source_columns")
