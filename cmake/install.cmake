# Installs the library, its public headers and a package, so that others can say
# find_package(mpssm) and link mpssm::mpssm.
include(CMakePackageConfigHelpers)

set(MPSSM_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/mpssm)

# libtorch usually lives outside the linker's paths: the installed library remembers its folder.
# (INSTALL_RPATH_USE_LINK_PATH would leave out a libtorch inside the source folder, as in .venv.)
set_target_properties(mpssm PROPERTIES
  INSTALL_RPATH $<TARGET_FILE_DIR:torch>
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

install(TARGETS mpssm EXPORT mpssmTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

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

install(EXPORT mpssmTargets NAMESPACE mpssm:: DESTINATION ${MPSSM_CMAKE_DIR})

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/mpssmConfig.cmake.in ${PROJECT_BINARY_DIR}/mpssmConfig.cmake
  INSTALL_DESTINATION ${MPSSM_CMAKE_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/mpssmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mpssmConfig.cmake
              ${PROJECT_BINARY_DIR}/mpssmConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/PinLibtorch.cmake
        DESTINATION ${MPSSM_CMAKE_DIR})
