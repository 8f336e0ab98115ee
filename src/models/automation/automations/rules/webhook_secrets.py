"""The place where the secret of a webhook is kept."""

from models.core.base import Id


def webhook_secret_place(automation_id: Id) -> str:
    """The place that a sealed webhook secret is bound to."""
    return f"automation|{automation_id}|sealed_webhook_secret"
