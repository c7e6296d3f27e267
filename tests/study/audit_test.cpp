// SPDX-License-Identifier: MIT
#include "mpssm/study/audit.h"

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/study/run_row.h"
#include "mpssm/train/config.h"

#include "tests/support/scratch.h"

namespace mpssm::study {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message_of;
using testing::Scratch;

const std::string kCommit(40, 'a');
const History kHistory{.commits = {kCommit}};

/// Two rows, the second like the first and with something to choose.
Experiment two_rows() {
  Row plain;
  plain.name = "plain";
  plain.dataset = "board:8x8";
  plain.metric = "roc_auc";
  plain.seeds = {3, 4};
  plain.settings = {"model.hops=2"};
  plain.own = {"model.hops=2"};
  Row chosen = plain;
  chosen.name = "chosen";
  chosen.like = "plain";
  chosen.own = {"model.blocks=1"};
  chosen.settings.push_back("model.blocks=1");
  chosen.candidates = {{"train.lr=0.1"}, {"train.lr=0.01"}, {"train.lr=0.001"}};
  chosen.candidate_runs = 2;
  chosen.candidate_budget = {"train.epochs=7"};
  return {.name = "any", .title = "", .source = "", .rows = {plain, chosen}};
}

std::string toml_of(const Row& row, const PlannedRun& planned, const Settings& candidate) {
  train::Config config = config_of(row, /*quick=*/false, candidate);
  config.seed = planned.seed;
  config.data.split = planned.split;
  return train::to_toml(config);
}

Provenance clean() {
  return {.commit = kCommit, .dirty = false, .machine = "an abacus", .libtorch = "2.0.0"};
}

RowResult sound_result(const Experiment& experiment, const Row& row, const Settings& chosen) {
  RowResult result{.experiment = experiment.name,
                   .row = row.name,
                   .dataset = row.dataset,
                   .metric = row.metric,
                   .protocol = "",
                   .version = "",
                   .planned = row.num_runs(),
                   .compared = std::max<std::int64_t>(1, std::ssize(row.candidates)),
                   .chosen = joined_settings(chosen)};
  for (const PlannedRun& planned : row.plan()) {
    result.runs.push_back({.seed = planned.seed,
                           .split = planned.split,
                           .value = 0.5,
                           .validation = 0.6,
                           .best_step = 5,
                           .steps = 10,
                           .code = clean(),
                           .config = toml_of(row, planned, chosen)});
  }
  return result;
}

/// Everything that is recorded of the two rows; the second of the candidates has the highest mean.
struct Recorded {
  Experiment experiment = two_rows();
  std::vector<RowResult> results = {};
  std::vector<Selection> selections = {};

  Recorded() {
    const Row& row = experiment.rows[1];
    results = {sound_result(experiment, experiment.rows[0], {}),
               sound_result(experiment, row, row.candidates[1])};
    Selection selection{.experiment = "any", .row = "chosen", .metric = "roc_auc"};
    const double values[] = {0.5, 0.7, 0.8, 0.6, 0.9, 0.2};
    std::size_t next = 0;
    for (const Settings& candidate : row.candidates) {
      for (const PlannedRun& planned : row.plan(row.candidate_runs)) {
        selection.runs.push_back(
            {.candidate = joined_settings(candidate),
             .seed = planned.seed,
             .split = planned.split,
             .validation = values[next++],
             .steps = 10,
             .code = clean(),
             .config = toml_of(row, planned, candidate_settings(row, candidate))});
      }
    }
    selections = {selection};
  }

  RowAudit audit(std::size_t row, const History* history = &kHistory) const {
    return audit_row(experiment, experiment.rows[row], results[row],
                     {.results = results, .selections = selections}, history);
  }
};

/// What a change of the records makes of the row that is changed.
RowAudit audit_after(std::size_t row, const std::function<void(Recorded&)>& change) {
  Recorded recorded;
  change(recorded);
  return recorded.audit(row);
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, from.size(), to);
}

TEST(Audit, SoundRecordsPass) {
  const Recorded recorded;
  for (const std::size_t row : {0, 1}) {
    const RowAudit audit = recorded.audit(row);
    EXPECT_EQ(audit.soundness, Soundness::kSound);
    EXPECT_THAT(audit.findings, IsEmpty());
    EXPECT_EQ(audit_words(audit), "sound");
  }
}

struct Breach {
  const char* finding;
  std::size_t row;
  std::function<void(Recorded&)> plant;
};

TEST(Audit, EachKindOfBreachIsFound) {
  const std::string other(40, 'b');
  const Breach breaches[] = {
      {"is not in the history", 0, [&](Recorded& r) { r.results[0].runs[1].code.commit = other; }},
      {"files were changed on top of commit", 0,
       [](Recorded& r) { r.results[0].runs[0].code.dirty = true; }},
      {"does not say which commit ran", 0,
       [](Recorded& r) { r.results[0].runs[1].code.dirty.reset(); }},
      {"does not say which commit ran", 0,
       [](Recorded& r) { r.results[0].runs[1].code.commit.clear(); }},
      {"split 0, seed 5: not of the protocol", 0,
       [](Recorded& r) { r.results[0].runs[1].seed = 5; }},
      {"split 1, seed 3: not of the protocol", 0,
       [](Recorded& r) { r.results[0].runs[0].split = 1; }},
      {"its settings say split 0, seed 4", 0,
       [](Recorded& r) { replace(r.results[0].runs[0].config, "seed = 3", "seed = 4"); }},
      {"3 runs planned, the protocol has 2", 0, [](Recorded& r) { r.results[0].planned = 3; }},
      {"dataset board:9x9, not board:8x8", 0,
       [](Recorded& r) { r.results[0].dataset = "board:9x9"; }},
      {"data.name is board:9x9", 0,
       [](Recorded& r) { replace(r.results[0].runs[1].config, "board:8x8", "board:9x9"); }},
      {"metric accuracy, not roc_auc", 0, [](Recorded& r) { r.results[0].metric = "accuracy"; }},
      {"no validation value", 0, [](Recorded& r) { r.results[0].runs[1].validation.reset(); }},
      {"selected step 11 of 10", 0, [](Recorded& r) { r.results[0].runs[1].best_step = 11; }},
      {"does not say how many settings were compared", 0,
       [](Recorded& r) { r.results[0].compared.reset(); }},
      {"2 settings compared, the row has 1", 0, [](Recorded& r) { r.results[0].compared = 2; }},
      {"the version is not that of the code that ran", 0,
       [](Recorded& r) { r.results[0].version_matches = false; }},
      // Settings: another one in one run of the row, or the row has changed since.
      {"model.hops is 3 there, 2 here", 0,
       [](Recorded& r) { replace(r.results[0].runs[1].config, "hops = 2", "hops = 3"); }},
      {"model.hops is 2 there, 4 here", 0,
       [](Recorded& r) { r.experiment.rows[0].settings = {"model.hops=4"}; }},
      {"unknown", 0, [](Recorded& r) { r.results[0].runs[0].config += "nonsense = 1\n"; }},
      {"chosen 'model.hops=9', but the row has no candidates", 0,
       [](Recorded& r) { r.results[0].chosen = "model.hops=9"; }},
      // The choice.
      {"chosen 'train.lr=0.001', but validation says 'train.lr=0.01'", 1,
       [](Recorded& r) {
         const Row& row = r.experiment.rows[1];
         r.results[1] = sound_result(r.experiment, row, row.candidates[2]);
       }},
      {"chosen 'train.lr=0.01', but validation says 'train.lr=0.001'", 1,
       [](Recorded& r) { r.selections[0].runs[5].validation = 0.8; }},
      {"train.lr is 0.1 there, 0.01 here", 1,
       [](Recorded& r) { replace(r.results[1].runs[0].config, "lr = 0.01", "lr = 0.1"); }},
      {"no validation values of its candidates", 1, [](Recorded& r) { r.selections.clear(); }},
      {"2 of 3 candidates have validation values", 1,
       [](Recorded& r) { r.selections[0].runs.pop_back(); }},
      {"3 settings compared, the row has 2", 1,
       [](Recorded& r) { r.experiment.rows[1].candidates.pop_back(); }},
      {"the row has no such candidate", 1,
       [](Recorded& r) { r.experiment.rows[1].candidates.pop_back(); }},
      {"candidates are compared on the first 1 of the protocol", 1,
       [](Recorded& r) { r.experiment.rows[1].candidate_runs = 1; }},
      {"candidates are compared by accuracy", 1,
       [](Recorded& r) { r.selections[0].metric = "accuracy"; }},
      {"candidate train.lr=0.1: train.epochs is 7 there, 8 here", 1,
       [](Recorded& r) { r.experiment.rows[1].candidate_budget = {"train.epochs=8"}; }},
      {"candidate train.lr=0.1: files were changed", 1,
       [](Recorded& r) { r.selections[0].runs[0].code.dirty = true; }},
      // The sibling.
      {"model.channels is 64, of plain it is 32, and the row does not say so", 1,
       [](Recorded& r) {
         for (RunResult& run : r.results[0].runs) {
           replace(run.config, "channels = 64", "channels = 32");
         }
       }},
      {"model.blocks is 1, of plain it is 8, and the row does not say so", 1,
       [](Recorded& r) { r.experiment.rows[1].own.clear(); }},
  };
  for (const Breach& breach : breaches) {
    const RowAudit audit = audit_after(breach.row, breach.plant);
    EXPECT_EQ(audit.soundness, Soundness::kBreach) << breach.finding;
    EXPECT_THAT(audit.findings, ::testing::Contains(HasSubstr(breach.finding)));
    EXPECT_THAT(audit_words(audit), ::testing::StartsWith("breach: "));
  }
}

TEST(Audit, OldRecordsAreNotAuditableAndHalfOldOnesAreABreach) {
  const auto forget = [](RunResult& run) {
    run.validation.reset();
    run.code = {};
  };
  const RowAudit old = audit_after(0, [&](Recorded& r) {
    r.results[0].compared.reset();
    for (RunResult& run : r.results[0].runs) forget(run);
  });
  EXPECT_EQ(old.soundness, Soundness::kNotAuditable);
  EXPECT_EQ(audit_words(old), "not auditable");
  EXPECT_THAT(old.findings, ElementsAre(HasSubstr("no validation values")));
  const RowAudit half = audit_after(0, [&](Recorded& r) {
    r.results[0].compared.reset();
    forget(r.results[0].runs[0]);
  });
  EXPECT_EQ(half.soundness, Soundness::kBreach);
}

TEST(Audit, WhatDivergedLosesAndEqualsGoToTheFirst) {
  const Experiment experiment = two_rows();
  const Row& row = experiment.rows[1];
  Recorded recorded;
  Selection& selection = recorded.selections[0];
  EXPECT_EQ(joined_settings(*best_candidate(row, selection)), "train.lr=0.01");
  selection.runs[2].validation.reset();
  EXPECT_EQ(joined_settings(*best_candidate(row, selection)), "train.lr=0.1");
  selection.runs[4].validation = 0.7;
  selection.runs[5].validation = 0.5;
  EXPECT_EQ(joined_settings(*best_candidate(row, selection)), "train.lr=0.1");
  for (CandidateRun& run : selection.runs) run.validation.reset();
  EXPECT_EQ(best_candidate(row, selection), nullptr);
  EXPECT_EQ(num_compared(row, selection), 3);
}

TEST(Audit, ShallowClonesAreSaidAndNotTakenForABreach) {
  const History shallow{.commits = {}, .is_whole = false};
  const RowAudit audit = Recorded().audit(0, &shallow);
  EXPECT_EQ(audit.soundness, Soundness::kSound);
  EXPECT_THAT(to_text({audit}, shallow), HasSubstr("not checked: whether the commits exist"));
  EXPECT_EQ(to_text({audit}, kHistory), "1 row recorded: 1 sound, 0 not auditable, 0 in breach");
}

TEST(Audit, RowsThatAreNoMoreAreABreach) {
  AllResults results;
  AllSelections selections;
  for (const Experiment& experiment : experiments()) {
    results[experiment.name];
    selections[experiment.name];
  }
  RowResult lost = Recorded().results[0];
  lost.row = "nowhere";
  results["gpp"].push_back(lost);
  const std::vector<RowAudit> audits = audit_all(results, selections, kHistory);
  ASSERT_EQ(audits.size(), 1);
  EXPECT_EQ(audits[0].soundness, Soundness::kBreach);
}

TEST(Audit, HistoryIsThatOfTheCheckout) {
  const Scratch scratch;
  EXPECT_THAT(message_of([&] { read_history(scratch.folder()); }),
              HasSubstr("git tells no history of it"));
  const std::string folder = (scratch / "it's here").string();
  const std::string git = "git -C \"" + folder + "\" -c user.name=A -c user.email=a@b.example ";
  std::filesystem::create_directories(folder + "/results");
  const std::string make = git + "init --quiet && " + git +
                           "commit --quiet --allow-empty -m a && " + git +
                           "commit --quiet --allow-empty -m b";
  if (std::system(make.c_str()) != 0) GTEST_SKIP() << "no git";
  const History history = read_history(folder + "/results");
  EXPECT_EQ(history.commits.size(), 2);
  EXPECT_TRUE(history.is_whole);
  for (const std::string& commit : history.commits) EXPECT_EQ(commit.size(), 40);
}

TEST(Selections, ComeBackToTheBit) {
  const Scratch scratch;
  const std::filesystem::path path = selection_path(scratch.folder(), "any");
  EXPECT_TRUE(read_selections(path).empty());
  Selection selection = Recorded().selections[0];
  selection.runs[0].validation = 1.0 / 3.0;
  selection.runs[1].validation.reset();
  record_selection(path, selection);
  const std::vector<Selection> back = read_selections(path);
  ASSERT_EQ(back.size(), 1);
  ASSERT_EQ(back[0].runs.size(), selection.runs.size());
  for (std::size_t i = 0; i < back[0].runs.size(); ++i) {
    EXPECT_EQ(back[0].runs[i].candidate, selection.runs[i].candidate);
    EXPECT_EQ(back[0].runs[i].validation, selection.runs[i].validation);
    EXPECT_EQ(back[0].runs[i].code, selection.runs[i].code);
    EXPECT_EQ(back[0].runs[i].config, selection.runs[i].config);
  }
  Selection twice = selection;
  twice.runs.push_back(twice.runs[0]);
  record_selection(path, twice);
  EXPECT_THAT(message_of([&] { read_selections(path); }), HasSubstr("is there twice"));
}

}  // namespace
}  // namespace mpssm::study
