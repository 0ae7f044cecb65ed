"""Duologue inside other frameworks: clients of the public protocol, which know nothing of a server's insides."""
