"""Tests of `xb.equivalent`: laws, rules, planted faults."""
