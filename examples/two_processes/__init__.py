"""One program in two processes, as on two machines: each process feeds its devices, and collectives connect them."""
