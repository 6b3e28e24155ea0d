"""One module a suite, each with ``run(bench)``; the command finds them by their file names."""
