"""Values of the released MiniCPM-o 4.5 code on a tiny random checkpoint, and what they were made of (see README.md)."""
