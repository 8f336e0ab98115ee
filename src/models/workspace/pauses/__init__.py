"""Pauses as people ask for them: of an automation, or of the whole workspace."""
