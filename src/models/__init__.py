"""The platform itself, in eight wings. It knows neither HTTP nor Temporal.

From bottom to top: core, people, messages, content, data, sources, automation, workspace. A wing
imports only those below it. A noun is a package in its wing; `tables`, `shapes`, `rules`,
`queries`, `commands` and `errors` mean the same in each.
"""
