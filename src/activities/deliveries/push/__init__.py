"""Pushes: one adapter for each provider that carries them."""
