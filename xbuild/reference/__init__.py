"""Reference tables of the op set: names, explanations of kinds of error, the migration table, typing stubs."""
