"""Audio between packets and units, and between chunks and packets: sample counts, no I/O."""
