"""What the partitioner has for all ops: pieces of arrays, the choice of axes, masks, windows of neighbours, the walk."""
