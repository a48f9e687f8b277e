"""What all ops share in the partitioner: pieces of arrays, the choice of axes, masks, windows of neighbours."""
