"""What each family of the acceptance cases runs: one module a family, each with a function `failure`."""
