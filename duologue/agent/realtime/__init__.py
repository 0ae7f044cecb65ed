"""The OpenAI-Realtime dialect: wire events, and the projection of a call onto them. Imports nothing of the engine."""
