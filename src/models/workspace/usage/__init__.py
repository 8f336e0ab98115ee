"""What a workspace holds and does, as its plan is talked about."""
