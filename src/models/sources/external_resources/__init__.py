"""Resources of providers, as they are shared by connections, mounts and imports."""
