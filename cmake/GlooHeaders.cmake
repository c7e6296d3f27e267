# Decides whether ranks can be built (MPSSM_HAS_GLOO), and gives c10d's headers what they include.
#
# libtorch's packages export Gloo's symbols and have the header of ProcessGroupGloo, but not the headers
# of Gloo that it includes. Gloo's types appear there behind pointers, or in inline classes that nobody
# here makes, so declarations are enough. Where the real headers are installed (Debian's libgloo-dev),
# they may be of another version than what libtorch was built with: these stand before them.
set(MPSSM_HAS_GLOO OFF)
get_target_property(definitions torch_cpu INTERFACE_COMPILE_DEFINITIONS)
get_target_property(includes torch_cpu INTERFACE_INCLUDE_DIRECTORIES)
list(GET includes 0 include)
if("USE_C10D_GLOO" IN_LIST definitions AND NOT Torch_VERSION VERSION_LESS 2.1 AND
   EXISTS ${include}/torch/csrc/distributed/c10d/ProcessGroupGloo.hpp)
  set(MPSSM_HAS_GLOO ON)
endif()
message(STATUS "mpssm: ranks by Gloo: ${MPSSM_HAS_GLOO}")

function(mpssm_declare_gloo header text)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/gloo_declarations/gloo/${header}
       CONTENT "// Written by cmake/GlooHeaders.cmake.\n#pragma once\n${text}")
endfunction()
if(MPSSM_HAS_GLOO)
  mpssm_declare_gloo(algorithm.h "")
  mpssm_declare_gloo(common/error.h "")
  mpssm_declare_gloo(config.h "")
  mpssm_declare_gloo(transport/device.h [[
namespace gloo::transport {
class Device;
}
]])
  mpssm_declare_gloo(context.h [[
#include <chrono>
namespace gloo {
class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};
namespace transport {
class UnboundBuffer;
}
}  // namespace gloo
]])
  mpssm_declare_gloo(rendezvous/store.h [[
#include <chrono>
#include <string>
#include <vector>
namespace gloo::rendezvous {
class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) = 0;
};
}  // namespace gloo::rendezvous
]])
endif()
