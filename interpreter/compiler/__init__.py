"""The compiler: turns a computation into Python source and the function that it defines, its plan."""
