"""Jobs that hung, as public threads report them: each as a small program with its verdict, its run and its fix."""
