"""A small network learns handwritten digits on four replicas, which sum their gradients by CrossReplicaSum."""
