"""Properties of instructions and computations: effects, waiting rules, device groups, order, structure."""
