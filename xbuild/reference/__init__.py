"""What is told of the op set: names of ops elsewhere, explanations of kinds of error, migration table, typing stubs."""
