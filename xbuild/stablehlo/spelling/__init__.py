"""The words of StableHLO text: names of element types, ops and choices, in both directions."""
