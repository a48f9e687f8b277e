"""A model of deadlock, independent of the check: small programs run in every interleaving and order, with all data."""
