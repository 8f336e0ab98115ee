"""Jobs: work on our own tables that takes longer than a request, done chunk by chunk.

A job is accepted in the transaction that asks for it, executed by one workflow per kind, and
leaves either its whole effect or none (design section 3).
"""
