"""Functions of JAX whose derivatives here must be those of jax.vjp in f64: each rule in many forms, then programs."""
