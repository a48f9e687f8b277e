"""Three lectures of 45 minutes: collectives, sharding, deadlocks."""
