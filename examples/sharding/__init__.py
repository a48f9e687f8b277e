"""A transformer block written for one device, under four shardings: what each sends, stores and computes, and why."""
