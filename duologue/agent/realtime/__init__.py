"""The OpenAI-Realtime wire events and their mapping; imports nothing of the engine."""
