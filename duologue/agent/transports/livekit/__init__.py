"""LiveKit rooms: a worker that takes jobs and brings a call into each job's room. Needs the extra ``livekit``."""
