"""Executable tests in the manner of Shardy's: sharded functions, what devices are given, what they have to give."""
