# Installs the libraries, their public headers and a package, so that others can say
# find_package(mpssm COMPONENTS core torch app) and link mpssm::mpssm_core, mpssm::mpssm or
# mpssm::mpssm_app.
include(CMakePackageConfigHelpers)

set(MPSSM_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/mpssm)

# libtorch usually lives outside the linker's paths: the installed libraries remember its folder.
# (INSTALL_RPATH_USE_LINK_PATH would leave out a libtorch inside the source folder, as in .venv.)
function(mpssm_install_library target component)
  set(rpath "$ORIGIN")
  if(NOT component STREQUAL core)
    list(APPEND rpath $<TARGET_FILE_DIR:torch>)
  endif()
  set_target_properties(${target} PROPERTIES
    INSTALL_RPATH "${rpath}"
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  install(TARGETS ${target} EXPORT mpssm_${component} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT mpssm_${component} NAMESPACE mpssm:: DESTINATION ${MPSSM_CMAKE_DIR})
endfunction()
mpssm_install_library(mpssm_core core)
if(NOT MPSSM_CORE_ONLY)
  mpssm_install_library(mpssm torch)
  mpssm_install_library(mpssm_app app)
endif()

# Headers are public unless a line at their top says "Private to" or "Internal to" a folder.
set(private_headers REGEX "-inl\\.h$" EXCLUDE)
file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/mpssm/*.h)
foreach(header IN LISTS headers)
  file(STRINGS ${header} mark LIMIT_COUNT 1 REGEX "^// (Private|Internal) to ")
  if(mark)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${header})
    list(APPEND private_headers REGEX "/${name}$" EXCLUDE)
  endif()
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/mpssm/
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mpssm
        FILES_MATCHING PATTERN "*.h" ${private_headers})

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/mpssmConfig.cmake.in ${PROJECT_BINARY_DIR}/mpssmConfig.cmake
  INSTALL_DESTINATION ${MPSSM_CMAKE_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/mpssmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mpssmConfig.cmake
              ${PROJECT_BINARY_DIR}/mpssmConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/PinLibtorch.cmake
        DESTINATION ${MPSSM_CMAKE_DIR})
