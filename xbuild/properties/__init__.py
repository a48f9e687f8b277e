"""What is known of instructions and computations: effects, groups of devices, order, structure."""
