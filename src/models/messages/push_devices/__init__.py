"""Push devices: the apps and browsers that a user wants to be told on."""
