"""One program on two processes, as on two machines: each feeds its own devices, and collectives connect them."""
