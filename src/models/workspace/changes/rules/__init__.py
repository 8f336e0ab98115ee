"""The rules of change sets. Pure."""
