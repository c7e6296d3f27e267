# To be included before find_package(Torch) once Torch_DIR is known. Torch's own config looks for its
# parts in the system's folders before its own, so that a second libtorch on the machine would be
# mixed in: name the parts that lie beside it.
if(Torch_DIR AND EXISTS ${Torch_DIR}/../Caffe2/Caffe2Config.cmake)
  get_filename_component(_mpssm_caffe2_dir ${Torch_DIR}/../Caffe2 ABSOLUTE)
  set(Caffe2_DIR ${_mpssm_caffe2_dir} CACHE PATH "Where Caffe2Config.cmake is" FORCE)
  get_filename_component(_mpssm_torch_lib ${Torch_DIR}/../../../lib ABSOLUTE)
  find_library(c10_LIBRARY NAMES c10 PATHS ${_mpssm_torch_lib} NO_DEFAULT_PATH)
  find_library(TORCH_LIBRARY NAMES torch PATHS ${_mpssm_torch_lib} NO_DEFAULT_PATH)
endif()
