# What `cmake --install` puts where: the program, the library with its headers, and a package config for find_package(weft).
include(CMakePackageConfigHelpers)
set(weft_package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/weft)

if(TARGET weft_program)
  install(TARGETS weft_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS weft EXPORT weft-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY weft/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft FILES_MATCHING PATTERN "*.h")
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/weft/examples)
install(EXPORT weft-targets NAMESPACE weft:: DESTINATION ${weft_package_directory})

configure_package_config_file(cmake/weftConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/weftConfig.cmake
                              INSTALL_DESTINATION ${weft_package_directory})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weftConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/weftConfigVersion.cmake
              cmake/FindOneDNN.cmake DESTINATION ${weft_package_directory})
