"""A second opinion on deadlocks: small programs run in every interleaving, order and data; nothing of the scheduler."""
