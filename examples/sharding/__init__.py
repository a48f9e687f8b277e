"""A transformer block written for one device, under four shardings: what each sends, keeps and computes, and why."""
