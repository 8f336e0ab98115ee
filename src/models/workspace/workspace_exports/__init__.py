"""Workspace exports: a whole workspace as a bundle."""
