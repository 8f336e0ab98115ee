"""Deliveries: what leaves the platform for a person or a server, tried until it arrives.

A delivery names the channel by which a subject (`subject_id`) is sent to a target (`target_id`).
The channel knows what the two are, and how it is sent; the workflow knows when it is tried again
(ADR 0055).
"""
