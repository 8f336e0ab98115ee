"""Providers of resources: one adapter each, behind one protocol (ADR 0045)."""
