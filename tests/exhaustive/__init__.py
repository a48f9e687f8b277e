"""Programs whose decisions are computed from ids, known collectives and loops, against a model that tries every run."""
