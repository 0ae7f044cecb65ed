"""MiniCPM-o 4.5: full duplex speech from its released tensors, configs and token ids; no code of the release is run."""
