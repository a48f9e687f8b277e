"""What commands share: candidates of completion, paths of outputs, limits, what is said."""
