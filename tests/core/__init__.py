"""Tests of recording: builder, errors, nesting, groups of devices."""
