# Writes OUTPUT: the commit of SOURCE_DIR and whether sources differ from it. Run at every build; the
# file is touched only when something changed.
cmake_minimum_required(VERSION 3.25)
set(commit "")
set(dirty "false")
find_package(Git QUIET)
if(GIT_FOUND AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse HEAD WORKING_DIRECTORY ${SOURCE_DIR}
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    set(commit "")
  else()
    # What the program is made of: recorded results and documents do not count.
    execute_process(COMMAND ${GIT_EXECUTABLE} status --porcelain -- mpssm cli cmake configs
                            CMakeLists.txt
                    WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE changes RESULT_VARIABLE failed)
    if(failed OR NOT changes STREQUAL "")
      set(dirty "true")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
"// Written by cmake/code_stamp.cmake.
#include \"cli/code_stamp.h\"

namespace mpssm::cli::code_stamp {

const char* const kCommit = \"${commit}\";
const bool kDirty = ${dirty};

}  // namespace mpssm::cli::code_stamp
")
