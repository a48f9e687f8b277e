"""Reader of StableHLO text: from trees of operations to modules."""
