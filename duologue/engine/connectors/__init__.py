"""Ordered, bounded, event-driven ways for a message to get from one stage to the next."""
