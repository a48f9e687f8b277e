"""Tests of channels that several sends share, and of groups that begin together."""
