"""Duologue: a realtime voice agent server for full-duplex omni models."""
