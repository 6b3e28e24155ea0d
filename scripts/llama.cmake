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

# libllama builds graphs that libggml computes, so its speed hardly matters, but it took most of the compile time. What the
# benches measure beside logitree is optimised: samplers, grammars, vocabularies. Sources that include the same headers are
# compiled together, except three whose static functions have equal names.
function(logitree_together name options)
    set(together "${CMAKE_BINARY_DIR}/logitree-${name}.cpp")
    list(TRANSFORM ARGN REPLACE "(.+)" "#include \"\\1\"" OUTPUT_VARIABLE lines)
    string(JOIN "\n" text ${lines})
    file(WRITE "${together}" "${text}\n")
    set_source_files_properties(${ARGN} TARGET_DIRECTORY llama PROPERTIES HEADER_FILE_ONLY ON)
    set_source_files_properties("${together}" TARGET_DIRECTORY llama
        PROPERTIES COMPILE_OPTIONS ${options} SKIP_UNITY_BUILD_INCLUSION ON)
    target_sources(llama PRIVATE "${together}")
endfunction()

function(logitree_compile_fast)
    set(llama "${CMAKE_CURRENT_SOURCE_DIR}/src")
    file(GLOB measured "${llama}/llama-sampler.cpp" "${llama}/llama-grammar.cpp" "${llama}/llama-vocab.cpp" "${llama}/unicode*.cpp")
    file(GLOB core "${llama}/llama*.cpp")
    file(GLOB models "${llama}/models/*.cpp")
    list(REMOVE_ITEM core ${measured} "${llama}/llama-kv-cache-dsv4.cpp")
    list(REMOVE_ITEM models "${llama}/models/glm5-next.cpp" "${llama}/models/qwen3next.cpp")
    logitree_together(measured -O2 ${measured})
    logitree_together(core -O1 ${core})
    logitree_together(models -O0 ${models})
    target_compile_options(llama PRIVATE -O1)
    target_compile_options(ggml-base PRIVATE -O1)

    # Kernels of layouts that Q4_1, the type of the demo's model, is not converted to.
    set(ggml "${CMAKE_CURRENT_SOURCE_DIR}/ggml/src/ggml-cpu")
    file(GLOB unused "${ggml}/repack.cpp" "${ggml}/arch/*/repack.cpp" "${ggml}/tiled/*.cpp")
    set_source_files_properties(${unused} TARGET_DIRECTORY ggml-cpu PROPERTIES COMPILE_OPTIONS -O1)
endfunction()
if(NOT MSVC)
    cmake_language(DEFER CALL logitree_compile_fast)
endif()
