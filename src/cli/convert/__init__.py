"""`workspace convert`: exports of other products as bundles."""
