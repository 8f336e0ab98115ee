"""The signing secret on the wire."""

from models.core.base import Shape


class SigningSecret(Shape):
    """`whsec_` and the base64 of 32 bytes, as libraries for Standard Webhooks take it."""

    secret: str
