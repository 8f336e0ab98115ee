"""The kinds of views and their manifests. Pure."""
