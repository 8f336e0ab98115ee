"""The platform itself, in eight wings. It knows neither HTTP nor Temporal.

From bottom to top: core, people, messages, content, data, sources, automation, workspace. A wing
imports only those below it. A noun is a module of its wing, or a package, in which `tables`,
`shapes`, `rules`, `queries` and `commands` mean the same everywhere.
"""
