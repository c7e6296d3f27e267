# Installs a build of mpssm, then configures, builds and runs the consumer project against it.
# Usage: cmake -D BUILD_DIR=... -D CXX_COMPILER=... -P run.cmake
cmake_minimum_required(VERSION 3.25)

set(work ${BUILD_DIR}/install-test)
file(REMOVE_RECURSE ${work})

execute_process(
  COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${work}/prefix
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

file(GLOB_RECURSE private_headers ${work}/prefix/*-inl.h)
if(private_headers)
  message(FATAL_ERROR "private headers were installed: ${private_headers}")
endif()

execute_process(
  COMMAND ${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/build
          -D CMAKE_PREFIX_PATH=${work}/prefix -D CMAKE_BUILD_TYPE=Release
          -D CMAKE_CXX_COMPILER=${CXX_COMPILER}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${work}/build COMMAND_ERROR_IS_FATAL ANY)

execute_process(
  COMMAND ${work}/build/core_consumer
  OUTPUT_VARIABLE output ECHO_OUTPUT_VARIABLE COMMAND_ERROR_IS_FATAL ANY)
if(NOT output MATCHES "core: done, X\\(3\\) = ")
  message(FATAL_ERROR "the consumer of the core ran, but did not print what was expected")
endif()
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${work}/build/core_consumer
     RESOLVED_DEPENDENCIES_VAR of_core UNRESOLVED_DEPENDENCIES_VAR missing)
if(missing OR of_core MATCHES "torch|c10|gomp")
  message(FATAL_ERROR "the core must stand without torch, but needs: ${of_core} ${missing}")
endif()

execute_process(
  COMMAND ${work}/build/consumer
  OUTPUT_VARIABLE output ECHO_OUTPUT_VARIABLE COMMAND_ERROR_IS_FATAL ANY)
if(NOT output MATCHES "output: 64 x 2\n.*loss: .* -> ")
  message(FATAL_ERROR "the consumer ran, but did not print what was expected")
endif()

# Two copies of libtorch or of the OpenMP runtime in one process mean wrong results or hangs.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${work}/build/consumer
     RESOLVED_DEPENDENCIES_VAR found
     UNRESOLVED_DEPENDENCIES_VAR missing
     CONFLICTING_DEPENDENCIES_PREFIX conflicts)
if(missing OR conflicts_FILENAMES)
  message(FATAL_ERROR "missing libraries: ${missing}; found twice: ${conflicts_FILENAMES}")
endif()
