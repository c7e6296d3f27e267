// SPDX-License-Identifier: MIT
#include "mpssm/study/results.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"
#include "mpssm/study/rows.h"

#include "tests/support/scratch.h"

namespace mpssm::study {
namespace {

namespace fs = std::filesystem;
using testing::message_of;
using testing::Scratch;
using ::testing::StartsWith;

RowResult any_row(const std::string& name, std::int64_t num_runs) {
  RowResult row{.experiment = "gpp",
                .row = name,
                .dataset = "diameter",
                .metric = "log10_mse",
                .protocol = "as it is done",
                .version = "0.2.0+1a2b3c4d5-dirty",
                .version_matches = false,
                .parameters = 4321,
                .planned = 10,
                .references = {{.name = "zero", .test = {{"mse", 1.0 / 3.0}}}}};
  for (std::int64_t i = 0; i < num_runs; ++i) {
    row.runs.push_back({.seed = i,
                        .split = 2,
                        .value = -3.0 - 0.1 * static_cast<double>(i),
                        .validation = 1.0 / 3.0,
                        .also = {{"mae_3", 2.0 / 3.0}},
                        .raw = 5e-324,
                        .best_step = 5,
                        .steps = 10,
                        .seconds = 12.3,
                        .peak_mib = 120.0,
                        .code = {.commit = std::string(40, 'a'),
                                 .dirty = true,
                                 .machine = "an abacus, 2 CPUs",
                                 .libtorch = "2.0.0"},
                        .config = "seed = 0\n[data]\nname = 'a'\n"});
  }
  return row;
}

TEST(Results, ComeBackToTheBit) {
  const Scratch scratch;
  const fs::path path = scratch / "new/gpp.jsonl";
  EXPECT_TRUE(read_results(path).empty());
  const RowResult row = any_row("diameter", 3);
  record_result(path, row);
  const std::vector<RowResult> back = read_results(path);
  ASSERT_EQ(back.size(), 1);
  EXPECT_EQ(back[0].version, row.version);
  EXPECT_FALSE(back[0].version_matches);
  EXPECT_EQ(back[0].parameters, row.parameters);
  ASSERT_EQ(back[0].references.size(), 1);
  EXPECT_EQ(back[0].references[0].test, row.references[0].test);
  ASSERT_EQ(back[0].runs.size(), 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const RunResult& run = back[0].runs[i];
    EXPECT_EQ(run.seed, row.runs[i].seed);
    EXPECT_EQ(run.value, row.runs[i].value);
    EXPECT_EQ(run.validation, row.runs[i].validation);
    EXPECT_EQ(run.also, row.runs[i].also);
    EXPECT_EQ(run.raw, row.runs[i].raw);
    EXPECT_EQ(run.refit, std::nullopt);
    EXPECT_EQ(run.code, row.runs[i].code);
    EXPECT_EQ(run.config, row.runs[i].config);
  }
  // What was read is written as it was.
  const std::string text = io::read_file(path);
  record_result(path, back[0]);
  EXPECT_EQ(io::read_file(path), text);
}

TEST(Results, ARowReplacesItselfAndNothingElse) {
  const Scratch scratch;
  const fs::path path = scratch / "gpp.jsonl";
  for (const char* name : {"a", "b", "c"}) record_result(path, any_row(name, 2));
  const std::string before = io::read_file(path);
  const std::size_t b = before.find("{\"experiment\":\"gpp\",\"row\":\"b\"");
  const std::size_t c = before.find("{\"experiment\":\"gpp\",\"row\":\"c\"");
  record_result(path, any_row("b", 5));
  const std::string after = io::read_file(path);
  EXPECT_THAT(after, StartsWith(before.substr(0, b)));
  EXPECT_THAT(after, ::testing::EndsWith(before.substr(c)));
  const std::vector<RowResult> rows = read_results(path);
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(find_result(rows, "b")->runs.size(), 5);
  EXPECT_EQ(find_result(rows, "d"), nullptr);
}

TEST(Results, RowsRecordedAtTheSameTimeAreAllKept) {
  const Scratch scratch;
  const fs::path path = scratch / "gpp.jsonl";
  constexpr int kWriters = 8;
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] { record_result(path, any_row("row-" + std::to_string(i), 2)); });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(read_results(path).size(), kWriters);
}

TEST(Results, ABrokenLineIsNamed) {
  const Scratch scratch;
  const fs::path path = scratch / "gpp.jsonl";
  record_result(path, any_row("a", 2));
  const std::string good = io::read_file(path);
  for (const std::string& bad : {std::string("\n"), std::string("{}\n"), good.substr(0, 50),
                                 good.substr(0, good.find('\n') + 1)}) {
    scratch.put("gpp.jsonl", good + bad);
    EXPECT_THAT(message_of([&] { read_results(path); }),
                StartsWith(path.string() + ":3: not a result: "));
  }
}

TEST(Results, DamagedFilesAreReadOrRefused) {
  const Scratch scratch;
  const fs::path path = scratch / "gpp.jsonl";
  record_result(path, any_row("a", 1));
  testing::for_each_damage(io::read_file(path), [&](const std::string& text) {
    read_results(scratch.put("gpp.jsonl", text));
  });
}

TEST(Results, ThoseInTheRepositoryAreOfKnownRows) {
  const AllResults all = read_all_results(fs::path(MPSSM_SOURCE_DIR) / "results");
  for (const Experiment& experiment : experiments()) {
    for (const RowResult& result : all.at(experiment.name)) {
      EXPECT_TRUE(std::any_of(experiment.rows.begin(), experiment.rows.end(),
                              [&](const Row& row) { return row.name == result.row; }))
          << experiment.name << " " << result.row;
    }
  }
}

}  // namespace
}  // namespace mpssm::study
