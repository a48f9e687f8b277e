"""The check's model of the programs of all devices, and the verdict with its findings and its report."""
