"""The model family that runs on a laptop's CPU with nothing to download."""
