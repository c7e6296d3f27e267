// SPDX-License-Identifier: MIT
#include "mpssm/report/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpssm::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Completion small_program() {
  return {
      .program = "prog",
      .verbs = {{.name = "make",
                 .help = "It's made: now",
                 .options = {{"--set", "a setting", true}, {"--quiet", "no talk", false}}},
                {.name = "data",
                 .help = "Data",
                 .parts = {{.name = "list", .help = "All", .options = {{"--json", "", false}}}}}},
      .keys = {"model.hops", "seed"},
      .datasets = {"board"}};
}

// tests/cli/usage_test.py has bash itself complete words; here is what all three must have.
TEST(Completion, HasEveryWordOfTheTables) {
  for (const Shell shell : {Shell::kBash, Shell::kZsh, Shell::kFish}) {
    const std::string script = completion_script(small_program(), shell);
    for (const char* word :
         {"make", "data", "list", "set", "quiet", "json", "model.hops=", "seed="}) {
      EXPECT_THAT(script, HasSubstr(word));
    }
  }
}

TEST(Completion, QuotesWhatAShellWouldRead) {
  EXPECT_THAT(completion_script(small_program(), Shell::kZsh),
              HasSubstr(R"('make:It'\''s made\: now')"));
  EXPECT_THAT(completion_script(small_program(), Shell::kFish),
              HasSubstr(R"('It'\''s made: now')"));
  EXPECT_THAT(completion_script(small_program(), Shell::kFish),
              HasSubstr("-l set -d 'a setting' -r"));
  EXPECT_THAT(completion_script(small_program(), Shell::kFish),
              Not(HasSubstr("-l quiet -d 'no talk' -r")));
}

}  // namespace
}  // namespace mpssm::report
