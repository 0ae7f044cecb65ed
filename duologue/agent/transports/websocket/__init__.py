"""OpenAI-Realtime over a WebSocket: events and audio both ways on one connection."""
