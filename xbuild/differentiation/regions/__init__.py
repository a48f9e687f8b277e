"""The derivatives of ops that call computations: what keeps values on the way forward, and the way back."""
