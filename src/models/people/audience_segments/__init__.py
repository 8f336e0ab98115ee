"""Audience segments: for whom a flag or an experiment is meant."""
