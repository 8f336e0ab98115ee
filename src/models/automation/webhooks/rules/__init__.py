"""Pure rules of webhook calls: verification, deduplication, payloads."""
