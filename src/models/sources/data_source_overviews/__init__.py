"""Data sources as they are shown: each with its newest run."""
