# Warnings as an INTERFACE target, so that only our own code is compiled under them.
add_library(pto_warnings INTERFACE)
target_compile_options(pto_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<CXX_COMPILER_ID:Clang>:-Werror=reorder-init-list -Wno-missing-field-initializers>
  # Rows of the tables leave columns at their defaults on purpose.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-field-initializers>
  $<$<BOOL:${PTO_WERROR}>:-Werror>)
