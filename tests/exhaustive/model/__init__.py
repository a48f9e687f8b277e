"""The exhaustive model: every interleaving of the steps of all devices, for all data that decide."""
