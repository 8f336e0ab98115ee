"""Alert rules: conditions that are watched, and the recipients who are notified when they hold (ADR
0100).
"""
