"""The provider `demo`: resources in memory, to try all that integrations do."""
