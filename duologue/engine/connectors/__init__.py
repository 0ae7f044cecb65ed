"""Edges between stages: ordered, bounded, event-driven."""

from duologue.engine.connectors.base import Chunk, Filed, Full, Missing, Parcel, Receiver, Sender
from duologue.engine.connectors.gate import Gate
from duologue.engine.connectors.inlet import Inlets
from duologue.engine.connectors.local import LocalConnector
from duologue.engine.connectors.outlet import Outlet, Outlets
from duologue.engine.connectors.shm import ShmEdge, ShmReceiver, ShmSender
from duologue.engine.connectors.socket import SocketReceiver, SocketSender

__all__ = [
    "Chunk",
    "Filed",
    "Full",
    "Gate",
    "Inlets",
    "LocalConnector",
    "Missing",
    "Outlet",
    "Outlets",
    "Parcel",
    "Receiver",
    "Sender",
    "ShmEdge",
    "ShmReceiver",
    "ShmSender",
    "SocketReceiver",
    "SocketSender",
]
