# Warnings as an INTERFACE target, so that only our own code is compiled under them.
add_library(pto_warnings INTERFACE)
target_compile_options(pto_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<CXX_COMPILER_ID:Clang>:-Werror=reorder-init-list -Wno-missing-field-initializers>
  # Rows of the tables leave columns at their defaults on purpose.
  # -Wrestrict of g++ 12 sees overlaps in std::string's operator+ that are none (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-field-initializers -Wno-restrict>
  $<$<BOOL:${PTO_WERROR}>:-Werror>)
