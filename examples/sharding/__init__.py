"""A transformer block for one device under four shardings: what each sharding sends, stores and computes, and why."""
