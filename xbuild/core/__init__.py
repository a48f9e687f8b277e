"""Programs as objects: instructions, computations, modules, and the builder that records them."""
