"""The doors of the house: each moves audio and control messages, none decides anything about a turn."""
