"""MiniCPM-o 4.5's hearing: the caller's audio to rows of the thinker's embedding space, ten for each second."""
