"""Compiling, evaluating and reading CEL without any input or output."""
