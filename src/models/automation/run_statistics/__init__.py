"""Statistics of runs: small sums by hour and day, which are exact (ADR 0093)."""
