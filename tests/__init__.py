"""Tests of Duologue; a package so that benchmarks share its harness."""
