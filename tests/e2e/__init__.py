"""Calls to the real server."""
