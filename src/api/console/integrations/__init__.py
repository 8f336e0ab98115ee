"""Pages of integrations: connections to providers, and what they show."""
