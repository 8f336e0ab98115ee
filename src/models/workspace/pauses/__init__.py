"""Pauses as people ask for them: of an automation, a connection, or the whole workspace."""
