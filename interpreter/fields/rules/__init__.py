"""Rules over prime fields: numbers of the fields, their order, random functions, and what each op gives."""
