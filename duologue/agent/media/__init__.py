"""Audio between packets and units, and between chunks and packets: small objects over sample counts, no I/O."""
