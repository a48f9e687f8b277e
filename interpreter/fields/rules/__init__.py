"""Rules over prime fields: numbers of the fields, their order, random functions, and the result of each op."""
