# Python3_EXECUTABLE: the interpreter of the tests and of the module. The cache or the environment's
# PYTHON3 may name one; otherwise Debian's own is taken, because numpy, pytest and pybind11 of the
# distribution belong to it and another python3 may stand first on PATH.
if(NOT DEFINED Python3_EXECUTABLE)
  if(DEFINED ENV{PYTHON3})
    set(Python3_EXECUTABLE $ENV{PYTHON3} CACHE FILEPATH "Python of the tests and of the module")
  elseif(EXISTS /usr/bin/python3)
    set(Python3_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "Python of the tests and of the module")
  endif()
endif()
# pybind11 looks for the same interpreter under this name.
set(Python_EXECUTABLE ${Python3_EXECUTABLE})
set(Python3_FIND_STRATEGY LOCATION)
set(Python3_FIND_VIRTUALENV STANDARD)
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
