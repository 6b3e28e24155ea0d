# Read by CMake while it configures llama.cpp (CMAKE_PROJECT_llama.cpp_INCLUDE, see setup.py): of llama-cpp-python's
# libraries only libllama and libggml are used here. The package forces this option on; a plain variable outweighs it.
set(LLAMA_BUILD_COMMON OFF)
