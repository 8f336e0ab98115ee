"""The platform itself, in eight domains. It knows neither HTTP nor Temporal.

From bottom to top: core, people, messages, content, data, sources, automation, workspace. A domain
imports only those below it. A resource is a module of its domain, or a package, in which `tables`,
`shapes`, `rules`, `queries` and `commands` mean the same everywhere.
"""
