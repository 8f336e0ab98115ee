"""Expressions: CEL text compiled once and evaluated on data under budgets.

See interface.md#expressions.
"""
