"""What the partitioner has for all ops: parts of arrays, the choice of axes, masks, windows of neighbours, the walk."""
