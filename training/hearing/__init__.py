"""What made the neural audio encoder's weights."""
