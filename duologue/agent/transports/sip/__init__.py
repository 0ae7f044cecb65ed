"""An embedded telephone endpoint: SIP signalling and RTP media."""
