"""From a computation to the Python function that runs it: facts about it, lines of source, and the compiled plan."""
