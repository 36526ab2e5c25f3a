# Builds and runs one consumer project in BUILD/consumer/KIND.
# Input: KIND (find_package or add_subdirectory), SOURCE, BUILD, COMPILER.
set(prefix ${BUILD}/consumer/prefix)
set(dir ${BUILD}/consumer/${KIND})

if(KIND STREQUAL "find_package")
  # From nothing, so that a header that is no longer installed is not found by luck.
  file(REMOVE_RECURSE ${prefix} ${dir})
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix}
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endif()

execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer/${KIND} -B ${dir} -G Ninja
          -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_COMPILER=${COMPILER}
          -D CMAKE_PREFIX_PATH=${prefix} -D PTO_SOURCE_DIR=${SOURCE}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${dir} --target consumer
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${dir}/consumer OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
message("${output}")
