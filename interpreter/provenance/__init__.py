"""From which elements of its operands each element of a result was computed."""
