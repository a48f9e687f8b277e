"""A notebook: building, a refusal, a run, a picture, and the step page."""
