"""Circuit breakers of automations: failures in a row pause it, and one run tries it again."""
