"""`weft view`: the journal in a browser, read-only, on loopback, behind a token."""
