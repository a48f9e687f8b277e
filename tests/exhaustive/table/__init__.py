"""Faults of programs that pass messages, as cross products of facts, each with a correct twin and its guilty call."""
