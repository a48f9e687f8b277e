"""The programs of all devices as the check sees them, and the verdict with its findings and its report."""
