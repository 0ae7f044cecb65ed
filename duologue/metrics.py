"""Every metric the server exports (Prometheus), in one place so that their names stay one vocabulary."""

from prometheus_client import Counter, Gauge, Histogram

_LATENCY_BUCKETS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)

CALLS = Counter("duologue_calls", "Calls that ended, by transport and outcome", ["transport", "outcome"])
CALLS_LIVE = Gauge("duologue_calls_live", "Calls in progress", ["transport"])
REFUSALS = Counter("duologue_refusals", "Calls refused or queued, by reason", ["reason"])
UNITS = Counter("duologue_units", "Units given to the thinker")
CONCEALED_SAMPLES = Counter("duologue_concealed_samples", "Input samples made up by loss concealment (16 kHz)")
DECISIONS = Counter("duologue_decisions", "Thinker decisions, by choice", ["choice"])
UNANSWERED = Counter("duologue_unanswered", "Times a caller spoke and the thinker only listened for long after")
UNIT_SECONDS = Histogram("duologue_unit_seconds", "Time from a unit's arrival at the thinker to its decision",
                         buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28))
TOOL_CALLS = Counter("duologue_tool_calls", "Tools called by the thinker")
TURNS = Counter("duologue_turns", "Replies that ended, by status", ["status"])
STOP_SECONDS = Histogram("duologue_stop_seconds",
                         "From an interrupting onset to the last reply sample handed to the network",
                         buckets=_LATENCY_BUCKETS)
VOICE_TO_VOICE_SECONDS = Histogram("duologue_voice_to_voice_seconds",
                                   "From the end of the caller's speech to the first sample of the reply",
                                   buckets=_LATENCY_BUCKETS)
FALSE_ALARMS = Counter("duologue_false_alarms", "Onsets over a reply after which it was resumed")
DROPS = Counter("duologue_drops", "Things dropped, by what they were and why", ["what", "reason"])
DERAILED = Counter("duologue_talker_derailed", "Replies in which the talker lost its thread, by how", ["how"])
STAGE_RESTARTS = Counter("duologue_stage_restarts", "Stage processes restarted", ["process"])
MOVES = Counter("duologue_session_moves", "Sessions moved to another replica of a stage process", ["process"])

IN_STAGES = {"drops": DROPS, "derailed": DERAILED, "unanswered": UNANSWERED}
"""What is counted in stage processes too; they tell the hub, which adds it to its own."""
