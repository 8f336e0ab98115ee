"""Expressions: CEL text compiled once and evaluated on data under budgets (decisions C11)."""
