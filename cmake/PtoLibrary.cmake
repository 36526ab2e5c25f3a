# pto_library(NAME SRCS a.cc ... [HEADERS a.h ...] [DEPS target ...] [PRIVATE_DEPS target ...])
#
# A static library `pto_NAME` (alias pto::NAME) whose headers are included as "folder/file.h" and
# installed under include/pto.
function(pto_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;HEADERS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(pto_${name} STATIC)
  add_library(pto::${name} ALIAS pto_${name})
  set_target_properties(pto_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(pto_${name} PUBLIC cxx_std_20)
  target_sources(pto_${name}
    PRIVATE ${ARG_SRCS}
    PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  target_link_libraries(pto_${name} PUBLIC ${ARG_DEPS}
                                    PRIVATE $<BUILD_INTERFACE:pto_warnings> ${ARG_PRIVATE_DEPS})
  install(TARGETS pto_${name} EXPORT pto FILE_SET HEADERS DESTINATION include/pto)
endfunction()

# pto_program(NAME SRCS main.cc ... DEPS target ...): an installed command-line program.
function(pto_program name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE pto_warnings ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  install(TARGETS ${name})
endfunction()
