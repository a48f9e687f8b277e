"""Which devices hold equal values, inferred and seen: random programs of several devices and their runs."""
