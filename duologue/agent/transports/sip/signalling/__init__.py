"""SIP between sockets and calls: RFC 3261 and what belongs to it; knows nothing of media."""
