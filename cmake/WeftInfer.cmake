# libweft_infer: what the C interface reaches of the library, and nothing else. No training, no MPI, no cairo, no ONNX:
# the linker takes from the archive what is called, drops the rest, and refuses what is missing.
file(GLOB weft_infer_sources CONFIGURE_DEPENDS weft/c_interface/*.cpp)
add_library(weft_infer SHARED ${weft_infer_sources})
add_library(weft::infer ALIAS weft_infer)
add_dependencies(weft_infer weft)
set_target_properties(weft_infer PROPERTIES EXPORT_NAME infer VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                                            CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                                            LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/weft_infer.map)
target_compile_features(weft_infer PRIVATE cxx_std_20)
target_compile_options(weft_infer PRIVATE -ffunction-sections -fdata-sections $<$<CONFIG:Release>:-O1>)
target_include_directories(weft_infer PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>
                                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# The archive as a file, without what else it would have linked.
set(weft_infer_libraries $<TARGET_FILE:weft> DNNL::dnnl fmt::fmt PNG::PNG JPEG::JPEG ZLIB::ZLIB Threads::Threads
                         nlohmann_json::nlohmann_json weft_build_options)
if(WEFT_OPENMP)
  list(APPEND weft_infer_libraries OpenMP::OpenMP_CXX)
else()
  list(APPEND weft_infer_libraries ${OpenMP_CXX_LIBRARIES})
endif()
foreach(library ${weft_infer_libraries})
  target_link_libraries(weft_infer PRIVATE $<BUILD_INTERFACE:${library}>)  # no affair of who uses the library
endforeach()
include(CheckLinkerFlag)
check_linker_flag(CXX -Wl,-z,pack-relative-relocs WEFT_PACKS_RELOCATIONS)  # a fiftieth of the file
if(WEFT_PACKS_RELOCATIONS)
  target_link_options(weft_infer PRIVATE -Wl,-z,pack-relative-relocs)
endif()
target_link_options(weft_infer PRIVATE -Wl,-z,noseparate-code -Wl,--gc-sections -Wl,--as-needed $<$<CONFIG:Release>:-Wl,--strip-all>
                                       -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/weft_infer.map)
if(NOT WEFT_SANITIZE)  # whose functions are in the program alone
  target_link_options(weft_infer PRIVATE -Wl,-z,defs)
endif()
