"""What is known of values before a run: constants, equality across devices, and control flow that depends on them."""
