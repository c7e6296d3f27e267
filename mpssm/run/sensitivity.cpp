// SPDX-License-Identifier: MIT
#include "mpssm/run/sensitivity.h"

#include <cmath>
#include <fmt/core.h>
#include <tuple>
#include <utility>

#include "mpssm/analysis/model_question.h"
#include "mpssm/base/error.h"
#include "mpssm/data/partition.h"
#include "mpssm/report/graph_answer.h"
#include "mpssm/report/model_answer.h"
#include "mpssm/report/text.h"
#include "mpssm/run/open_run.h"
#include "mpssm/run/partition_profile.h"

namespace mpssm::run {
namespace {

using base::refuse_if;
using report::PictureKind;
using Say = std::function<void(const std::string&)>;

std::int64_t node_named(const data::BareGraph& graph, const std::string& id) {
  return id.empty() ? -1 : data::find_node(graph, id);
}

template <typename Answer>
SensitivityResult rendered(const SensitivityRequest& request, const data::BareGraph& graph,
                           const Answer& answer, PictureKind picture) {
  SensitivityResult result;
  if (request.draws) result.picture = report::to_svg(graph, answer, picture);
  result.words =
      request.json ? report::to_json(graph, answer) + "\n" : report::to_text(graph, answer);
  return result;
}

data::BareGraph read_graph(const SensitivityRequest& request) {
  const auto seed = static_cast<std::uint64_t>(request.wishes.seed);
  if (!request.make.empty()) return data::make_graph(request.make, seed);
  data::LoadOptions load;
  load.data_dir = request.data_dir;
  if (request.directed) load.directed = data::EdgeUse::kForward;
  return data::load_or_make_graph(request.what, load, seed);
}

SensitivityResult ask_graph(const SensitivityRequest& request, const engine::Executor& executor,
                            const analysis::Stages& stages, const Say& say) {
  const data::BareGraph graph = read_graph(request);
  for (const std::string& note : graph.notes) say("note: " + note);
  const std::int64_t nodes = graph.graph.num_nodes();
  refuse_if(nodes == 0, graph.name + ": expected a node");
  std::pair ends{node_named(graph, request.source), node_named(graph, request.target)};
  if (ends == std::pair<std::int64_t, std::int64_t>(-1, -1) && !request.all) {
    ends = analysis::usual_pair(graph.name, graph.graph).value_or(ends);
  }
  analysis::GraphQuestion question(graph.graph, graph::gso_kind_from_name(request.gso),
                                   request.taus);
  std::tie(question.source, question.target) = ends;
  analysis::GraphWishes& wishes = question.wishes = request.wishes;
  const PictureKind picture =
      request.picture.value_or(report::usual_picture(ends.first, ends.second));
  wishes.map = request.draws && picture == PictureKind::kMap;
  wishes.of_node = request.draws && picture == PictureKind::kGraph;
  question.extremes =
      nodes <= analysis::kMaxAllPairs || wishes.worst > 0 || wishes.depth || request.draws;
  analysis::check(question, graph.name);
  if (!question.limit && (wishes.lambda_star || wishes.bounds)) {
    say("note: no limit: " + question.why_no_limit);
  }
  for (const std::string& note : report::cost_notes(nodes, question.steps_of_all_pairs(),
                                                    analysis::all_pairs_bytes(nodes, executor))) {
    say(note);
  }
  if (question.is_whole() && !question.extremes) {
    say("note: too many pairs for extremes over all of them; give --source or --target");
  }
  const analysis::GraphAnswer answer = analysis::answer(question, executor, stages);
  SensitivityResult result = rendered(request, graph, answer, picture);
  if (request.html) result.page = report::to_html(graph, question.gso, answer);
  return result;
}

SensitivityResult ask_parts(const SensitivityRequest& request, ranks::Communicator& ranks,
                            const engine::Executor& executor, const analysis::Stages& stages) {
  const PartitionAnswer found = answer({.folder = request.what,
                                        .source = request.source,
                                        .target = request.target,
                                        .taus = request.taus,
                                        .w = request.wishes.w,
                                        .gso = request.gso_is_given ? request.gso : ""},
                                       ranks, executor, stages);
  return ranks.is_first() ? rendered(request, found.graph, found.answer, PictureKind::kCurve)
                          : SensitivityResult();
}

OpenRun open_for(const SensitivityRequest& request, const std::string& path, const Say& say) {
  ReopenOptions how{.data_dir = request.data_dir, .skip_new_classes = true};
  if (!request.data.empty()) how.new_data = request.data;
  OpenRun run = open_run(path, how);
  for (const std::string& note : run.experiment.dataset->notes) say("note: " + note);
  try {
    take_sample(run, request.sample);
  } catch (const base::Error& error) {
    throw error.at("--sample");
  }
  return run;
}

analysis::ModelQuestion question_about(const SensitivityRequest& request, const OpenRun& run) {
  return {.run = run.name,
          .network = *run.experiment.model.module,
          .x = run.input.x,
          .gso = run.input.gso,
          .graph = run.graph.graph,
          .num_steps = run.experiment.problem->shape().num_steps,
          .predicts_graphs = run.predicts_graphs,
          .block = request.block,
          .lambda_star = request.wishes.lambda_star,
          .top = request.top};
}

void check_question(const SensitivityRequest& request, const analysis::ModelQuestion& question) {
  refuse_if(question.source >= 0 && question.target < 0,
            "--source: of a run, expected --target too: which prediction is meant");
  const std::int64_t blocks = analysis::num_blocks(question.network);
  refuse_if(blocks > 0 && request.block > blocks,
            fmt::format("--block: expected 1 to {}, got {}", report::shown(blocks),
                        report::shown(request.block)));
  refuse_if(question.predicts_graphs && (request.predictions > 0 || !request.compare.empty()),
            "--predictions and --compare: this model predicts for whole graphs, there is no "
            "distance to compare by; give --sample");
  refuse_if(question.predicts_graphs && question.target >= 0 && question.source < 0,
            "--target: this model predicts for whole graphs; give --sample alone");
  refuse_if(request.picture == PictureKind::kMap,
            "--picture map: of a run, expected curve or graph");
  refuse_if(
      request.picture == PictureKind::kGraph && question.target < 0 && !question.predicts_graphs,
      "--picture graph: expected --target, got none");
}

SensitivityResult ask_run(const SensitivityRequest& request, const analysis::Stages& stages,
                          const Say& say) {
  const OpenRun run = open_for(request, request.what, say);
  analysis::ModelQuestion question = question_about(request, run);
  question.taus = request.taus;
  question.source = node_named(run.graph, request.source);
  question.target = node_named(run.graph, request.target);
  check_question(request, question);
  if (question.target >= 0 && !run.predicts_graphs) question.targets = {question.target};
  question.multi_hop = request.multi_hop;
  if (question.target < 0) question.targets = spread_over_test(run, request.predictions);
  std::optional<OpenRun> other;
  std::optional<analysis::ModelQuestion> compare;
  if (!request.compare.empty()) {
    refuse_if(question.targets.empty(), "--compare: expected --target or --predictions with it");
    other.emplace(open_for(request, request.compare, say));
    refuse_if(!have_same_graph(run, *other) || other->predicts_graphs,
              fmt::format("--compare: expected a run on the same graph as {}, got {} on {}",
                          run.name, other->name, other->graph.name));
    question.compare = &compare.emplace(question_about(request, *other));
  }
  analysis::ModelAnswer answer = analysis::answer(question, stages);
  answer.dataset = run.experiment.dataset->name;
  answer.kind = to_string(run.experiment.config.model.kind);
  answer.asked_for_taus = request.asked_for_taus;
  return rendered(request, run.graph, answer,
                  request.picture.value_or(report::usual_picture(answer)));
}

}  // namespace

Subject subject_of(const SensitivityRequest& request) {
  const std::filesystem::path path = request.what;
  if (path.empty()) return Subject::kGraph;
  if (path.filename() == "model.safetensors" || is_run(path)) return Subject::kRun;
  return data::is_partition(path) ? Subject::kParts : Subject::kGraph;
}

SensitivityResult ask(const SensitivityRequest& request, ranks::Communicator& ranks,
                      const engine::Executor& executor, const analysis::Stages& stages,
                      const Say& say) {
  refuse_if(!std::isfinite(request.wishes.w), "--w: expected a finite number");
  const Subject subject = subject_of(request);
  if (subject == Subject::kParts) return ask_parts(request, ranks, executor, stages);
  refuse_if(ranks.size() > 1, "--ranks: expected a graph in parts; cut it: mpssm data partition");
  return subject == Subject::kRun ? ask_run(request, stages, say)
                                  : ask_graph(request, executor, stages, say);
}

}  // namespace mpssm::run
