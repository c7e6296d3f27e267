# Finds libtorch: a hint (Torch_DIR or CMAKE_PREFIX_PATH), then the torch package of the project's
# virtual environment or of python3, then the system's (Debian's libtorch-dev).
if(NOT Torch_DIR AND NOT CMAKE_PREFIX_PATH)
  find_program(MPSSM_PYTHON NAMES python3
               HINTS ${PROJECT_SOURCE_DIR}/.venv/bin NO_CACHE)
  if(MPSSM_PYTHON)
    # find_spec does not import torch, so its Python dependencies need not be installed.
    execute_process(
      COMMAND ${MPSSM_PYTHON} -c
              "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '', end='')"
      OUTPUT_VARIABLE _mpssm_torch_root ERROR_QUIET)
    if(_mpssm_torch_root)
      set(Torch_DIR ${_mpssm_torch_root}/share/cmake/Torch CACHE PATH "Where TorchConfig.cmake is")
    endif()
  endif()
endif()

include(PinLibtorch)
find_package(Torch REQUIRED)
message(STATUS "mpssm: libtorch ${Torch_VERSION} in ${Torch_DIR}")
