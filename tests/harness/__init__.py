"""What a test or a benchmark needs to be a caller: voices, browsers, peers, bad networks, the server."""
