"""Alert rules: conditions that are watched, and who is told when they hold (ADR 0100)."""
