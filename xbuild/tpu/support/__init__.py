"""What the calls of `xb.tpu` share: refusals, nested structures, arrays, group assignments, the tracing under way."""
