"""Tests of runs: values, devices, strict mode, engines, custom calls, provenance."""
