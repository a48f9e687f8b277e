"""A run: devices as coroutines, the grid that answers their requests, limits, observers, and the report of a stop."""
