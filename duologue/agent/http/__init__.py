"""The HTTP face of the server: signalling, health, metrics and the page."""
