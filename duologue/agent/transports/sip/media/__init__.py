"""The media of a telephone call: SDP offers and answers, RTP, SRTP, keys pressed."""
