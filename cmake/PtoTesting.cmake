# How tests are declared. Every test carries one label, so that `ctest -L unit` runs one kind:
# unit, golden, python, corpus, fuzz, consumer, docs, style.

# What isa/host_level.h knows. A level that this computer does not have is a test that is skipped.
set(pto_host_levels baseline avx2 avx512)
set(pto_host_level_missing "THREW exception: .?PTO_HOST_LEVEL=[a-z0-9]+: the processor does not have")

# pto_unit_test(NAME [THREADED] [HOST_LEVELS] SRCS a_test.cc ... DEPS target ...): one doctest
# executable. THREADED says that it starts threads, so that it runs under ThreadSanitizer too (label
# threads); HOST_LEVELS that it is a test for each level of the host (label levels), but with a
# sanitizer, which takes its time, only for the highest.
function(pto_unit_test name)
  cmake_parse_arguments(ARG "THREADED;HOST_LEVELS" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE pto_warnings pto_doctest_main ${ARG_DEPS})
  if(ARG_HOST_LEVELS AND sanitizer_at EQUAL -1)
    foreach(level IN LISTS pto_host_levels)
      add_test(NAME unit.${name}.${level} COMMAND ${name})
      set_tests_properties(unit.${name}.${level} PROPERTIES LABELS "unit;levels"
        ENVIRONMENT PTO_HOST_LEVEL=${level} SKIP_REGULAR_EXPRESSION ${pto_host_level_missing})
    endforeach()
    return()
  endif()
  add_test(NAME unit.${name} COMMAND ${name})
  set_tests_properties(unit.${name} PROPERTIES LABELS unit)
  if(ARG_THREADED)
    # A block that waits for a later one runs many insns first; ThreadSanitizer makes that minutes.
    set_tests_properties(unit.${name} PROPERTIES LABELS "unit;threads" TIMEOUT 1800)
    add_dependencies(pto_threaded_tests ${name})
  endif()
endfunction()

# pto_python_test(NAME LABEL label COMMAND script argument ...): a Python program that finds the
# built programs in $PTO_BIN_DIR and the built module on PYTHONPATH.
function(pto_python_test name)
  cmake_parse_arguments(ARG "" "LABEL" "COMMAND" ${ARGN})
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${ARG_COMMAND}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL}
    ENVIRONMENT "PTO_BIN_DIR=${PROJECT_BINARY_DIR}/bin;PYTHONPATH=${PROJECT_BINARY_DIR}/pybind;PYTHONDONTWRITEBYTECODE=1")
endfunction()

# pto_fuzz_target(NAME SRCS a_fuzz.cc ... DEPS target ...): a libFuzzer entry point. With
# PTO_BUILD_FUZZERS (clang) it is a fuzzer, otherwise a program that replays inputs; either way a
# test replays tests/fuzz/corpus/NAME, which holds the seeds and every input that once failed.
function(pto_fuzz_target name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  add_executable(fuzz_${name} ${ARG_SRCS})
  target_link_libraries(fuzz_${name} PRIVATE pto_warnings ${ARG_DEPS})
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  if(PTO_BUILD_FUZZERS)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} -runs=0 ${corpus})
  else()
    target_sources(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} ${corpus})
  endif()
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz)
endfunction()
