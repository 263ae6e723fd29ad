# What `cmake --install` puts where: the program with its completions and manual pages, the library with its headers, and
# a package config for find_package(weft).
include(CMakePackageConfigHelpers)
set(weft_package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/weft)

if(TARGET weft_program)
  install(TARGETS weft_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(CMAKE_CROSSCOMPILING)
    message(STATUS "Completions and manual pages are left out: the program, which writes them, does not run here")
  else()
    # Written by the program as it is installed, from the tables behind its --help.
    set(weft_pages ${CMAKE_CURRENT_BINARY_DIR}/pages)
    install(CODE "
      file(REMOVE_RECURSE \"${weft_pages}\")
      file(MAKE_DIRECTORY \"${weft_pages}\")
      execute_process(COMMAND \"$<TARGET_FILE:weft_program>\" man --directory \"${weft_pages}/man1\"
                      COMMAND_ERROR_IS_FATAL ANY)
      foreach(pair bash:weft zsh:_weft fish:weft.fish)
        string(REPLACE \":\" \";\" pair \"\${pair}\")
        list(GET pair 0 shell)
        list(GET pair 1 name)
        file(MAKE_DIRECTORY \"${weft_pages}/\${shell}\")
        execute_process(COMMAND \"$<TARGET_FILE:weft_program>\" completion \${shell}
                        OUTPUT_FILE \"${weft_pages}/\${shell}/\${name}\" COMMAND_ERROR_IS_FATAL ANY)
      endforeach()")
    install(DIRECTORY ${weft_pages}/man1/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(DIRECTORY ${weft_pages}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(DIRECTORY ${weft_pages}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(DIRECTORY ${weft_pages}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endif()
endif()
install(TARGETS weft EXPORT weft-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY weft/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft FILES_MATCHING PATTERN "*.h")
if(TARGET weft_infer)
  # A part that stands alone: `cmake --install BUILD --component infer`, find_package(weft COMPONENTS infer).
  install(TARGETS weft_infer EXPORT weft-infer-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT infer)
  install(FILES weft/weft_infer.h weft/weft_infer.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft COMPONENT infer)
  install(EXPORT weft-infer-targets NAMESPACE weft:: DESTINATION ${weft_package_directory} COMPONENT infer)
endif()
install(DIRECTORY machines/ DESTINATION ${CMAKE_INSTALL_DATADIR}/weft/machines)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/weft/examples)
install(EXPORT weft-targets NAMESPACE weft:: DESTINATION ${weft_package_directory})

configure_package_config_file(cmake/weftConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/weftConfig.cmake
                              INSTALL_DESTINATION ${weft_package_directory})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
set(weft_package_files ${CMAKE_CURRENT_BINARY_DIR}/weftConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/weftConfigVersion.cmake)
install(FILES ${weft_package_files} cmake/FindOneDNN.cmake DESTINATION ${weft_package_directory})
install(FILES ${weft_package_files} DESTINATION ${weft_package_directory} COMPONENT infer EXCLUDE_FROM_ALL)
