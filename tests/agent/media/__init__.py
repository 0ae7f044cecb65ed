"""Tests of the media path. Property tests are the same in every run and know no deadline."""

from hypothesis import settings

steady = settings(deadline=None, derandomize=True)
