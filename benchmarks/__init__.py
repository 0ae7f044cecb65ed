"""Programs that measure the product as its callers meet it; each prints a table."""
