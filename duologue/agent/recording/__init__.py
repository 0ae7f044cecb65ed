"""Calls recorded as they are held, and replayed without a caller through the same code: the tool for bug reports."""
