"""One program over two processes, as over two machines: each feeds its own devices, and the collectives join them."""
