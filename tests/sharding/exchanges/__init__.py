"""Tests of exchanges: what devices send where elements move along dimensions that are cut."""
