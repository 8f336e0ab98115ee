"""People: whoever an identity provider has vouched for."""
