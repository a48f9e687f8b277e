"""Structural faults: starts and dones, channels, groups, source-target pairs, schedules."""
