"""Kinds of blocks, their contents, how they nest, and what they name. Pure."""
