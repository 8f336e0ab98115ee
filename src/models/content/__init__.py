"""The tree of a workspace: items and who may see them, files, and the blocks on surfaces.

An item places a thing of any domain in the tree, by its kind and id alone. What stands behind it is
made, copied and shown by the domain that owns it.
"""
