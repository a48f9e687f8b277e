"""What users see of a partition: tiles of global arrays, and commands with --partition."""
