"""The value rules, one file for each family of ops; importing them fills the table."""
