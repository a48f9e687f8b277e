"""Arrays whose elements come from other places of other arrays, and the exchanges that bring them to each device."""
