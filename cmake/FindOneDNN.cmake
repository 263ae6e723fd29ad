# Finds oneDNN by header and library and makes the target DNNL::dnnl.
# Not by its own package config: Debian's asks for the OpenCL headers, which the CPU engine does not need.
find_path(ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(ONEDNN_LIBRARY dnnl)
if(ONEDNN_INCLUDE_DIR AND EXISTS "${ONEDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h")
  file(STRINGS "${ONEDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" version_lines REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH)")
  string(REGEX REPLACE "[^0-9;]+" "" version_numbers "${version_lines}")
  list(JOIN version_numbers "." ONEDNN_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  OneDNN REQUIRED_VARS ONEDNN_LIBRARY ONEDNN_INCLUDE_DIR VERSION_VAR ONEDNN_VERSION
  REASON_FAILURE_MESSAGE "install libdnnl-dev, or point CMAKE_PREFIX_PATH at a oneDNN installation")

if(OneDNN_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION "${ONEDNN_LIBRARY}"
                                              INTERFACE_INCLUDE_DIRECTORIES "${ONEDNN_INCLUDE_DIR}")
endif()
mark_as_advanced(ONEDNN_INCLUDE_DIR ONEDNN_LIBRARY)
