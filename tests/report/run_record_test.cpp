// SPDX-License-Identifier: MIT
#include "mpssm/report/run_record.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"

#include "tests/support/scratch.h"

namespace mpssm::report {
namespace {

using mpssm::testing::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

RunRecord any_record() {
  return {
      .version = "0.2.0",
      .run = "runs/größer \"a\"\\b\n",
      .dataset = "own",
      .task = "node_regression",
      .metric = "mse",
      .protocol = "as it comes",
      .seed = -3,
      .split = std::numeric_limits<std::int64_t>::max(),
      .num_parameters = 12,
      .steps = 300,
      .best_step = 7,
      .metrics = {{"val", {{"mse", 0.1}, {"mae", 1.0 / 3.0}}},
                  {"test", {{"mse", std::numeric_limits<double>::denorm_min()}, {"mae", -0.0}}}},
      .references = {{"zero", {{"mse", 1e300}}}, {"last value", {}}, {"a", {{"mse", 2.0}}}},
      .seconds = 12.345678901234567,
      .peak_mib = 100.0};
}

TEST(RunRecord, ComesBackFromItsJson) {
  const RunRecord record = any_record();
  for (const int indent : {-1, 2}) {
    const RunRecord back = run_record_from_json(to_json(record, indent), "a");
    EXPECT_EQ(to_json(back), to_json(record));
    EXPECT_EQ(back.run, record.run);
    EXPECT_EQ(back.split, record.split);
    EXPECT_EQ(back.metrics, record.metrics);
    EXPECT_TRUE(std::signbit(back.metrics.at("test").at("mae")));
    ASSERT_EQ(back.references.size(), 3);
    EXPECT_EQ(back.references[1].name, "last value");
    EXPECT_EQ(back.seconds, record.seconds);
  }
}

TEST(RunRecord, ValueThatIsNoNumberComesBackAsNone) {
  RunRecord record = any_record();
  record.metrics["val"]["mse"] = std::numeric_limits<double>::quiet_NaN();
  record.metrics["val"]["mae"] = std::numeric_limits<double>::infinity();
  const RunRecord back = run_record_from_json(to_json(record), "a");
  EXPECT_TRUE(std::isnan(back.metrics.at("val").at("mse")));
  EXPECT_TRUE(std::isnan(back.metrics.at("val").at("mae")));
}

TEST(RunRecord, AnythingElseIsRefusedInOneLine) {
  const std::string good = to_json(any_record());
  const auto refusal = [](const std::string& text) {
    return message_of([&] { run_record_from_json(text, "runs/a/record.json"); });
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string("null"), std::string("{}"),
        good.substr(0, good.size() - 1), good + "x", std::string(100'000, '['),
        changed("\"steps\":300", "\"steps\":300.5"), changed("\"steps\":300", "\"steps\":\"many\""),
        changed("\"dataset\":\"own\"", "\"dataset\":7"), changed("{\"mse\":1e+300}", "[1]"),
        changed("\"mse\":0.1", "\"mse\":\"low\""), changed("\"mse\":0.1", "\"mse\":1e999"),
        changed("größer", "gr\xFF")}) {
    EXPECT_THAT(refusal(bad), AllOf(StartsWith("runs/a/record.json: not the record of a run: "),
                                    ::testing::Not(HasSubstr("\n"))))
        << bad.substr(0, 100);
  }
  EXPECT_THAT(refusal(changed("\"best_step\"", "\"last_step\"")), HasSubstr("'best_step'"));
}

TEST(RunRecord, DamagedTextIsReadOrRefused) {
  mpssm::testing::for_each_damage(to_json(any_record()),
                                  [](const std::string& text) { run_record_from_json(text, "a"); });
}

}  // namespace
}  // namespace mpssm::report
