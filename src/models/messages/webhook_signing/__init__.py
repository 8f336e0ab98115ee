"""The secret a workspace signs its outgoing webhooks with."""
