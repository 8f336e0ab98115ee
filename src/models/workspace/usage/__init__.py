"""The holdings and activity of a workspace, as its plan is talked about."""
