# Build options in one place: warnings, sanitizers, tests.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

option(WEFT_TESTS "Build the tests" ON)
option(WEFT_BENCHMARKS "Build benchmarks/kernels.cpp, which compares kernels with the speed of memory and with oneDNN's" OFF)
option(WEFT_OPENMP "Run weft's own loops on OpenMP threads; OFF: on threads made per loop, for the thread sanitizer" ON)
option(WEFT_FUZZ "Build a libFuzzer program per parser (clang)" OFF)
set(WEFT_SANITIZE "" CACHE STRING "Sanitizers to build with: empty, 'address,undefined' or 'thread'")

add_library(weft_build_options INTERFACE)
target_compile_options(weft_build_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # `omp simd` is a wish: at low optimisation, or for the baseline's vectors, clang may decline it.
  target_compile_options(weft_build_options INTERFACE -Wno-pass-failed)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # Wrong about "literal" + std::string in gcc 12: https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105651
  target_compile_options(weft_build_options INTERFACE -Wno-restrict)
endif()
if(WEFT_SANITIZE)
  add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${WEFT_SANITIZE})
  # Function multiversioning runs resolvers before a sanitizer has started.
  add_compile_definitions(WEFT_NO_MULTIVERSION)
endif()
if(WEFT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
