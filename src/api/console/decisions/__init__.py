"""The page on which a link of a mail decides an approval."""
