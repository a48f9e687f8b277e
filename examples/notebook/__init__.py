"""A notebook that builds a program, shows a refusal, runs and draws the program, and opens the step page."""
