"""Time entries: what a person spends time on, measured by a running clock or written down."""
