"""Edges between stages: ordered, bounded, event-driven."""

from duologue.engine.connectors.base import Chunk, Connector, Full
from duologue.engine.connectors.local import LocalConnector
from duologue.engine.connectors.socket import SocketConnector

__all__ = ["Chunk", "Connector", "Full", "LocalConnector", "SocketConnector"]
