"""Incidents: a run that fails is noted, and then grouped with its like (ADR 0094)."""

import sqlalchemy as sa
from alembic import op

revision = "0077"
down_revision = "0076"
branch_labels = None
depends_on = None

NOTED = """
CREATE FUNCTION note_failed_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ungrouped_failure (run_id, workspace_id) VALUES (NEW.id, NEW.workspace_id)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER note_failed_run AFTER UPDATE OF status ON automation_run
    FOR EACH ROW WHEN (
        NEW.status IN ('failed', 'timed_out') AND OLD.status IS DISTINCT FROM NEW.status
        AND NEW.source <> 'test' AND NEW.options -> 'test' IS DISTINCT FROM 'true'::jsonb
    )
    EXECUTE FUNCTION note_failed_run();
"""


def upgrade() -> None:
    op.create_table(
        "ungrouped_failure",
        sa.Column("run_id", sa.Uuid(), primary_key=True),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
    )
    op.create_index("ix_ungrouped_failure_workspace_id", "ungrouped_failure", ["workspace_id"])
    _create_incident()
    op.create_table(
        "incident_run",
        sa.Column("run_id", sa.Uuid(), primary_key=True),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("incident_id", sa.Uuid(), nullable=False),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=False),
        _of_incident("incident_run"),
    )
    op.create_index(
        "ix_incident_run_incident_id", "incident_run", ["incident_id", "failed_at", "run_id"]
    )
    op.create_index("ix_incident_run_failed_at", "incident_run", ["failed_at"])
    op.create_table(
        "incident_version",
        sa.Column("incident_id", sa.Uuid(), primary_key=True),
        sa.Column("automation_version_id", sa.Uuid(), primary_key=True),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("runs", sa.BigInteger(), nullable=False),
        _of_incident("incident_version"),
    )
    op.execute(NOTED)


def _create_incident() -> None:
    moments = ("first_failed_at", "last_failed_at", "opened_at", "watched_since", "checked_at")
    op.create_table(
        "incident",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("automation_id", sa.Uuid(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("node_id", sa.String()),
        sa.Column("error_code", sa.String()),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("runs", sa.BigInteger(), nullable=False),
        sa.Column("runs_before", sa.BigInteger(), nullable=False),
        sa.Column("openings", sa.Integer(), nullable=False),
        *[sa.Column(name, sa.DateTime(timezone=True), nullable=False) for name in moments],
        sa.Column("last_run_id", sa.Uuid(), nullable=False),
        sa.Column("last_version_id", sa.Uuid(), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True)),
        sa.Column("close_reason", sa.String()),
        sa.Column("closed_by_user_id", sa.Uuid()),
        sa.Column("assignee_user_id", sa.Uuid()),
        sa.Column("muted", sa.Boolean(), nullable=False),
        sa.Column("note", sa.String(), nullable=False),
        sa.UniqueConstraint("workspace_id", "id", name="uq_incident_workspace_id_id"),
        sa.UniqueConstraint(
            "automation_id", "fingerprint", name="uq_incident_automation_id_fingerprint"
        ),
        sa.CheckConstraint(
            "close_reason IN ('person', 'retried', 'recovered')", name="ck_incident_close_reason"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "automation_id"],
            ["automation.workspace_id", "automation.id"],
            name="fk_incident_workspace_id_automation_id_automation",
        ),
        *[
            sa.ForeignKeyConstraint([name], ["app_user.id"], name=f"fk_incident_{name}_app_user")
            for name in ("assignee_user_id", "closed_by_user_id")
        ],
    )
    order = ["workspace_id", "opened_at", "id"]
    is_open = sa.text("closed_at IS NULL")
    op.create_index("ix_incident_all", "incident", order)
    op.create_index("ix_incident_open", "incident", order, postgresql_where=is_open)
    op.create_index("ix_incident_checked", "incident", ["checked_at"], postgresql_where=is_open)
    is_closed = sa.text("closed_at IS NOT NULL")
    op.create_index("ix_incident_closed", "incident", ["closed_at"], postgresql_where=is_closed)


def _of_incident(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["workspace_id", "incident_id"],
        ["incident.workspace_id", "incident.id"],
        name=f"fk_{table}_workspace_id_incident_id_incident",
    )


def downgrade() -> None:
    op.execute("DROP TRIGGER note_failed_run ON automation_run; DROP FUNCTION note_failed_run()")
    for table in ("incident_version", "incident_run", "incident", "ungrouped_failure"):
        op.drop_table(table)
