// SPDX-License-Identifier: MIT
#include "mpssm/run/evaluation.h"

#include <set>

#include "mpssm/base/error.h"
#include "mpssm/io/file.h"
#include "mpssm/report/run_record.h"
#include "mpssm/run/experiment.h"
#include "mpssm/run/run_report.h"

namespace mpssm::run {
namespace {

namespace fs = std::filesystem;

data::Part part_of(const std::string& name) {
  if (name == "train") return data::Part::kTrain;
  return name == "val" ? data::Part::kVal : data::Part::kTest;
}

report::Evaluation evaluate_one(const EvaluateOptions& options, const std::string& folder,
                                std::set<std::string>& said) {
  const Experiment experiment =
      reopen(folder, {.data_dir = options.data_dir, .new_data = options.data});
  for (const std::string& note : experiment.dataset->notes) {
    if (options.on_note && said.insert(note).second) options.on_note(note);
  }
  const bool is_new = experiment.dataset->is_new;
  if (is_new && !options.part.empty()) {
    throw base::Error("--part: data that the model was not trained on have no parts");
  }
  const std::string part = is_new ? "labelled" : options.part.empty() ? "test" : options.part;
  report::Evaluation result{.run = folder,
                            .dataset = experiment.dataset->name,
                            .protocol = experiment.dataset->protocol,
                            .part = part,
                            .metric = experiment.metric,
                            .metrics = evaluate(experiment, part_of(part))};
  const fs::path record = fs::path(folder) / "record.json";
  if (part == "test" && fs::exists(record)) {
    result.references =
        report::references_of(report::run_record_from_json(io::read_file(record), record.string()));
  }
  return result;
}

}  // namespace

std::vector<report::Evaluation> evaluate_runs(EvaluateOptions options) {
  if (options.runs.size() > 1 && !options.data && !holds_runs(options.runs.back())) {
    options.data = options.runs.back();
    options.runs.pop_back();
  }
  std::vector<report::Evaluation> all;
  std::set<std::string> said;
  for (const std::string& folder : runs_in(options.runs)) {
    all.push_back(evaluate_one(options, folder, said));
    if (all.back().metric != all.front().metric || all.back().part != all.front().part) {
      throw base::Error(
          {.where = folder,
           .expected = all.front().metric + " on " + all.front().part + " as of " + all.front().run,
           .got = all.back().metric + " on " + all.back().part,
           .hint = "sum up runs of one task"});
    }
  }
  return all;
}

}  // namespace mpssm::run
