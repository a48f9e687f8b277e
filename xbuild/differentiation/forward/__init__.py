"""Forward mode: tangents of results from tangents of parameters, along the order of the program."""
