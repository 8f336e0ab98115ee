"""Platform administrators, as the identity provider names them."""

from uuid import uuid4

from cli.supervisor.development import DevelopmentIssuer, mint_session


def admin_session(issuer: DevelopmentIssuer, email: str | None = None) -> str:
    """A session of a platform administrator: a new user, or the one with this address."""
    email = email or f"admin-{uuid4().hex}@example.test"
    claims = {"sub": email, "email": email, "name": "Test", "platform_admin": True}
    return mint_session(issuer.key, issuer.issuer, issuer.audience, claims, lifetime_seconds=3600)
