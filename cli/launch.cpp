// SPDX-License-Identifier: MIT
// The program `mpssm`: says how waiting threads are to wait, then loads everything else. GNU OpenMP
// reads its settings while it is loaded, before any main(), so they cannot be given later.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <iostream>
#include <unistd.h>

#include "mpssm/version.h"

namespace {

/// By default a thread of OpenMP that waits spins for milliseconds. On a machine that others use
/// too, it takes away the core that the others need to get done: training was 25 times slower
/// beside two busy processes. Ours wait otherwise (engine::ThreadPool), so torch's may sleep soon.
constexpr const char* kSpinCount = "1000";

void wait_politely() {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  constexpr int kKeepWhatIsSet = 0;
  setenv("GOMP_SPINCOUNT", kSpinCount, kKeepWhatIsSet);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("mpssm %s\n", mpssm::kVersion);
    return 0;
  }
  wait_politely();
  void* library = dlopen("libmpssm_cli.so", RTLD_NOW | RTLD_GLOBAL);
  void* entry = library != nullptr ? dlsym(library, "mpssm_main") : nullptr;
  if (entry == nullptr) {
    std::fprintf(stderr, "mpssm: cannot load the program: %s\n", dlerror());
    return 1;
  }
  const int code = reinterpret_cast<int (*)(int, char**)>(entry)(argc, argv);
  // Libtorch takes a tenth of a second to free what the system frees at once.
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);
}
