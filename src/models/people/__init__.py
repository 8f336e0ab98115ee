"""Actors: users and their workspaces, members, invitations, API keys, and the log of requests.

`credentials` finds who a key or a session belongs to. Every other domain receives the caller as an
`Actor` and asks nothing here again.
"""
