"""Array algorithms that the value rules share: folds, windows, gathers, sorts, products, random bits."""
