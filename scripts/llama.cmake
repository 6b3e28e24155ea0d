# Read by CMake while it configures llama.cpp (CMAKE_PROJECT_llama.cpp_INCLUDE, see setup.py): of llama-cpp-python's
# libraries only libllama and libggml are used here. The package forces this option on; a plain variable outweighs it.
set(LLAMA_BUILD_COMMON OFF)

# Where the machine has AMX, ggml's kernels for it end in an illegal instruction (llama.cpp #26954: the compiler drops the
# tile configuration, which stands on the stack). Without them AVX-512 is used.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-mno-amx-int8 LOGITREE_HAS_NO_AMX)
if(LOGITREE_HAS_NO_AMX)
    add_compile_options(-mno-amx-int8)
endif()
