"""llama-cpp-python's server with every model hooked, and its own arguments."""

from ._server import main

main()
