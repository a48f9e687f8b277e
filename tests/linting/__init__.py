"""`xb.lint`: each rule with a fault and without it, comments that allow, the command, faults planted in programs."""
