# Read by CMake while it configures llama.cpp (CMAKE_PROJECT_llama.cpp_INCLUDE, see setup.py): of llama-cpp-python's
# libraries only libllama and libggml are used here. The package forces this option on; a plain variable outweighs it.
set(LLAMA_BUILD_COMMON OFF)
set(LLAMA_ALL_WARNINGS OFF)

# Where the machine has AMX, ggml's kernels for it end in an illegal instruction (llama.cpp #26954: the compiler drops the
# tile configuration on the stack). Without them AVX-512 is used.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-mno-amx-int8 LOGITREE_HAS_NO_AMX)
if(LOGITREE_HAS_NO_AMX)
    add_compile_options(-mno-amx-int8)
endif()

# libllama builds graphs that libggml computes, so its speed hardly matters, but it takes most of the compile time. What
# the benches measure beside logitree keeps its optimisation: samplers, grammars, vocabularies.
function(logitree_compile_fast)
    set(measured llama-sampler.cpp llama-grammar.cpp llama-vocab.cpp unicode.cpp unicode-data.cpp)
    list(TRANSFORM measured PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/src/")
    set_source_files_properties(${measured} TARGET_DIRECTORY llama
        PROPERTIES COMPILE_OPTIONS -O3 SKIP_PRECOMPILE_HEADERS ON)
    target_compile_options(llama PRIVATE -O1)
    target_precompile_headers(llama PRIVATE <algorithm> <functional> <map> <memory> <regex> <set> <string> <unordered_map> <vector>)
endfunction()
if(NOT MSVC)
    cmake_language(DEFER CALL logitree_compile_fast)
endif()
