"""What stands on a surface: kinds of blocks, their contents, how they nest. Pure."""
