// SPDX-License-Identifier: MIT
// Pages as text: all that is in the data is there, nothing escapes, nothing is fetched.
#include "mpssm/report/run_page.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"
#include "mpssm/report/run_summary.h"

namespace mpssm::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

RunPage small_run() {
  RunPage run;
  run.record.run = "runs/a&b";
  run.record.dataset = "own <data>";
  run.record.metric = "accuracy";
  run.record.steps = 30;
  run.record.best_step = 20;
  run.record.metrics = {{"val", {{"accuracy", 0.75}, {"loss", 0.5}}},
                        {"test", {{"accuracy", 0.625}, {"loss", 0.6}}}};
  run.record.references = {{"<mean>", {{"accuracy", 0.5}}}};
  run.data = {{"file", "<nodes.csv>"}};
  run.settings = {{"seed", "0", "0", ""}, {"model.blocks", "8", "4", "blocks <help>"}};
  run.history = {.name = {"step", "train_loss", "val_loss", "val_accuracy"},
                 .value = {{10, 20, 30}, {1, 0.5, 0.2}, {0.9, 0.5, 0.7}, {0.5, 0.75, 0.7}}};
  ClassTable table{.class_names = {"<no>", "yes"},
                   .id = {"<a>", "b", "c"},
                   .truth = {0, 1, 1},
                   .predicted = {1, 1, 0},
                   .probability = {0.1F, 0.9F, 0.2F, 0.8F, 0.6F, 0.4F}};
  run.classes = classification_of(table);
  run.explorer = Explorer{.gso = graph::make_gso(graph::make_grid(3, 3)),
                          .colours = {{.name = "truth", .value = std::vector<double>(9, 1.0)}},
                          .blocks = {{"block 1", {1.0, 0.9}}}};
  return run;
}

std::size_t times(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

void expect_self_contained(const std::string& html) {
  EXPECT_THAT(html, StartsWith(std::string(page_start())));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  for (const char* address : {"http://", "https://", " src=", "@import", "url("}) {
    // The name of SVG's language is an address that nobody follows.
    const std::size_t allowed =
        std::string(address) == "http://" ? times(html, "http://www.w3.org/2000/svg") : 0;
    EXPECT_EQ(times(html, address), allowed) << address;
  }
}

TEST(RunPage, HoldsWhatIsKnownAndNothingElseIsNeeded) {
  const std::string html = to_html(small_run());
  expect_self_contained(html);
  EXPECT_LT(html.size(), 200'000u);
  for (const char* bad : {"<data>", "<mean>", "<nodes.csv>", "<help>", "<no>", "<a>"}) {
    EXPECT_THAT(html, Not(HasSubstr(bad))) << bad;
  }
  for (const char* word : {"own &lt;data&gt;", "runs/a&amp;b", "0.625", "model.blocks", "selected",
                           "&lt;mean&gt;", "class=\"sortable\"", "ROC", "id=\"explorer-data\""}) {
    EXPECT_THAT(html, HasSubstr(word));
  }
  EXPECT_EQ(times(html, "<h1>"), 1u);
  EXPECT_EQ(times(html, "<section"), times(html, "<h2"));
}

TEST(RunPage, EveryControlHasALabelAndEveryPictureAName) {
  const std::string html = to_html(small_run());
  EXPECT_EQ(times(html, "<select"), times(html, "<label>Colour by <select"));
  EXPECT_EQ(times(html, "<input"), 3u);
  EXPECT_EQ(times(html, "role=\"img\" aria-label=\""), times(html, "<figure class=\"chart\">"));
}

TEST(RunPage, RunsWithoutDataSayWhy) {
  RunPage run = small_run();
  run.classes.reset();
  run.explorer.reset();
  run.notes = {"Predictions and graph are not shown: nodes.csv has changed"};
  const std::string html = to_html(run);
  EXPECT_THAT(html, HasSubstr("nodes.csv has changed"));
  EXPECT_THAT(html, Not(HasSubstr("explorer-data")));
  expect_self_contained(html);
}

TEST(RunPage, NumbersAndForecastsHaveTheirSections) {
  RunPage run = small_run();
  run.classes.reset();
  run.numbers = {regression_of(
      {.name = "height", .id = {"a", "b"}, .truth = {1, 2}, .predicted = {1.5, 2.5}})};
  EXPECT_THAT(to_html(run), HasSubstr("Prediction against truth: height"));
  run.numbers.clear();
  run.forecast = ForecastErrors{.windows = 3,
                                .horizon = 3,
                                .mae_of_step = {1, 2, 3},
                                .rmse_of_step = {1, 2, 3},
                                .mae_of_node = {1, std::nan("")},
                                .bias_of_node = {1, std::nan("")},
                                .truth = {1, 2},
                                .forecast = {1, 2},
                                .examples = {{"7", 10, {1, 2}, {3, 4, 5}, {3, 4, 6}}}};
  const std::string html = to_html(run);
  EXPECT_THAT(html, HasSubstr("Error by steps ahead"));
  EXPECT_THAT(html, HasSubstr("Node 7"));
  EXPECT_THAT(html, Not(HasSubstr(">nan<")));
}

std::vector<RunPage> seeds() {
  std::vector<RunPage> runs;
  for (int seed = 0; seed < 6; ++seed) {
    RunPage run = small_run();
    run.record.run = "runs/" + std::to_string(seed);
    run.settings[0].value = std::to_string(seed);
    run.settings[1].value = seed < 3 ? "4" : "8";
    run.record.metrics["test"]["accuracy"] = 0.5 + 0.1 * (seed % 3) + (seed < 3 ? 0.0 : 0.2);
    runs.push_back(run);
  }
  return runs;
}

TEST(ComparisonPage, PutsSeedsTogetherWithTheirInterval) {
  const std::string html = comparison_html(seeds());
  expect_self_contained(html);
  EXPECT_THAT(html, HasSubstr("model.blocks=4"));
  EXPECT_THAT(html, HasSubstr("model.blocks=8"));
  // 0.5, 0.6, 0.7: mean 0.6, t(0.975, 2) = 4.3027, half width 4.3027 * 0.1 / sqrt(3) = 0.2484.
  EXPECT_THAT(html, HasSubstr("0.3516 to 0.8484"));
  EXPECT_THAT(html, HasSubstr("validation accuracy"));
  EXPECT_EQ(times(html, "<td>runs/"), 6u);
}

TEST(ComparisonPage, WarnsOfDifferentData) {
  std::vector<RunPage> runs = seeds();
  EXPECT_THAT(comparison_html(runs), Not(HasSubstr("different data")));
  runs[2].record.dataset = "other";
  EXPECT_THAT(comparison_html(runs), HasSubstr("different data"));
}

TEST(RunSummary, OfSeveralRunsHasMeanAndDeviation) {
  std::vector<RunRecord> records;
  for (const RunPage& run : seeds()) records.push_back(run.record);
  records.resize(3);  // 0.5, 0.6, 0.7
  EXPECT_THAT(summary_of(records),
              HasSubstr("test accuracy 0.6000 \u00b1 0.1000 (mean, sample deviation, 3 runs)"));
  const auto json = nlohmann::json::parse(summary_json("runs/all", records));
  EXPECT_NEAR(json["test_mean"].get<double>(), 0.6, 1e-12);
  EXPECT_NEAR(json["test_std"].get<double>(), 0.1, 1e-12);
  EXPECT_EQ(json["runs"].size(), 3u);
  EXPECT_EQ(json["runs"][1]["run"], "runs/1");
}

TEST(RunSummary, LeavesOutWhatIsNotDefined) {
  RunRecord record = small_run().record;
  record.metrics["test"]["r2"] = std::nan("");
  EXPECT_THAT(summary_of(record), Not(HasSubstr("r2")));
  record.metrics["test"]["r2"] = 0.5;
  EXPECT_THAT(summary_of(record), HasSubstr("r2"));
}

TEST(RunText, IsAPageForATerminal) {
  const std::string text = to_text(small_run());
  EXPECT_THAT(text, HasSubstr("model.blocks     8        4"));
  EXPECT_THAT(text, HasSubstr("accuracy"));
  EXPECT_THAT(text, HasSubstr("\u2581\u2588"));
}

}  // namespace
}  // namespace mpssm::report
