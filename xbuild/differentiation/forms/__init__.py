"""What rules of several families share: forms of arrays, products by labels, folds, index vectors, windows."""
