"""Runners: what executes an autoregressive model for many resumable sessions at once."""
