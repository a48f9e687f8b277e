"""Custom calls: registered functions, targets without one, text, and the targets of LAPACK."""
