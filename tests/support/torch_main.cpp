// SPDX-License-Identifier: MIT
// The main() of tests that link libtorch, which takes a tenth of a second to free what the system
// frees at once: hundreds of tests are processes of their own.
#include <cstdio>
#include <iostream>
#include <unistd.h>

#include <gmock/gmock.h>

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  const int code = RUN_ALL_TESTS();
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);
}
