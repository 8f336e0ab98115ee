"""Stored replies of calls that carried an `Idempotency-Key` (decisions C3)."""
