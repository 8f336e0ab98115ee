"""The questions of a form, their conditions, and the answers it takes. Pure."""
