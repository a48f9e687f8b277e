"""Cost of a program without running it: operations and bytes of each instruction, in the counting of XLA."""
