# The installed package: find_package(pto) gives pto::isa, pto::assembler, pto::simulator and so on.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(pto_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/pto)
install(EXPORT pto NAMESPACE pto:: FILE pto-targets.cmake DESTINATION ${pto_package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/pto-config.cmake.in
                              ${PROJECT_BINARY_DIR}/pto-config.cmake
                              INSTALL_DESTINATION ${pto_package_dir})
# Before version 1 a minor version may change anything.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pto-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/pto-config.cmake ${PROJECT_BINARY_DIR}/pto-config-version.cmake
        DESTINATION ${pto_package_dir})
