// SPDX-License-Identifier: MIT
#include "mpssm/analysis/graph_question.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "mpssm/analysis/normalised_graph.h"
#include "mpssm/analysis/walk.h"
#include "mpssm/base/error.h"
#include "mpssm/graph/distances.h"
#include "mpssm/graph/spectrum.h"

namespace mpssm::analysis {
namespace {

/// What sums of thousands of terms may be off by.
constexpr double kRounding = 1e-12;

Progress share_of_walk(const GraphQuestion& question, const BlockProgress& progress) {
  if (!progress) return {};
  const auto last = static_cast<double>(question.taus.back());
  return [progress, last](std::int64_t tau) { progress(static_cast<double>(tau) / last); };
}

std::optional<std::int64_t> depth_of_pair(const GraphQuestion& question, std::int64_t source,
                                          std::int64_t target, const engine::Executor& executor) {
  const double limit = question.limit->limit(target, source);
  if (limit == 0.0) return {};
  return first_reaching(question.gso, source, target, *question.wishes.depth * limit,
                        question.wishes.max_tau, executor);
}

/// `entry` as of A alone: W scales both sides alike, and may overflow.
PairBounds bounds_of_pair(const GraphQuestion& question, const std::vector<double>& entry) {
  PairBounds bounds;
  const double limit = question.limit->limit(question.target, question.source);
  for (std::size_t t = 0; t < entry.size(); ++t) {
    const std::int64_t tau = question.taus[t];
    const double error = question.limit->error_bound(question.target, question.source, tau);
    const double lower = std::max(limit - error, 0.0);
    const double upper = limit + error;
    bounds.hold = bounds.hold && entry[t] >= lower - kRounding && entry[t] <= upper + kRounding;
    bounds.lower.push_back(question.scaled(lower, tau));
    bounds.upper.push_back(question.scaled(upper, tau));
  }
  bounds.is_certain = question.limit->is_certain();
  return bounds;
}

/// `found` as of A alone, see above.
AllPairsBounds bounds_of_graph(const GraphQuestion& question, const std::vector<Extremes>& found) {
  const DeepLimit* limit = question.limit.get();
  const double radius = limit != nullptr ? 1.0 : graph::spectral_radius(question.gso);
  AllPairsBounds bounds;
  for (const Extremes& at : found) {
    const double largest = global_bound(radius, question.graph.num_nodes(), at.tau);
    bounds.hold = bounds.hold && at.largest.value >= largest - kRounding;
    bounds.largest.push_back(question.scaled(largest, at.tau));
    if (const auto least = limit != nullptr ? limit->minimum_bound(at.tau) : std::nullopt) {
      bounds.hold = bounds.hold && at.least.value >= *least - kRounding;
      bounds.least.push_back(question.scaled(std::max(*least, 0.0), at.tau));
    }
  }
  return bounds;
}

/// The eigenvalue search is quick on small graphs; on large ones it has to be asked for.
bool wants_lambda_star(const GraphQuestion& question) {
  constexpr std::int64_t kQuick = 200'000;
  return question.limit != nullptr && (question.wishes.lambda_star || question.wishes.bounds ||
                                       question.gso.num_nonzeros() <= kQuick);
}

GraphAnswer describe_graph(const GraphQuestion& question) {
  GraphAnswer answer{.taus = question.taus,
                     .w = question.wishes.w,
                     .gso = std::string(graph::to_string(question.gso.kind())),
                     .source = question.source,
                     .target = question.target,
                     .nodes = question.graph.num_nodes(),
                     .edges = question.graph.num_edges(),
                     .is_symmetric = question.graph.is_symmetric(),
                     .components = graph::components(question.graph).count};
  if (wants_lambda_star(question)) {
    const DeepLimit& limit = *question.limit;
    answer.lambda_star =
        question.is_pair() ? limit.lambda_star(question.source) : limit.lambda_star();
    answer.is_certain = limit.is_certain();
  }
  if (question.is_whole() && question.limit != nullptr) {
    answer.least_limit = question.limit->least_limit();
  }
  return answer;
}

PairAnswer answer_pair(const GraphQuestion& question, const engine::Executor& executor,
                       const BlockProgress& progress) {
  PairAnswer answer{
      .hops = hops_to(question.gso, question.target)[question.source],
      .entry = pair_profile(question.gso, question.source, question.target, question.taus, executor,
                            share_of_walk(question, progress))};
  for (std::size_t t = 0; t < answer.entry.size(); ++t) {
    answer.entry[t] = std::abs(answer.entry[t]);
    answer.value.push_back(question.scaled(answer.entry[t], question.taus[t]));
  }
  if (question.limit == nullptr) return answer;
  answer.limit = question.limit->limit(question.target, question.source);
  for (const std::int64_t tau : question.taus) {
    answer.limit_value.push_back(question.scaled(*answer.limit, tau));
  }
  if (question.wishes.bounds) answer.bounds = bounds_of_pair(question, answer.entry);
  if (question.wishes.depth) {
    answer.depth = {.share = *question.wishes.depth,
                    .max_tau = question.wishes.max_tau,
                    .first = depth_of_pair(question, question.source, question.target, executor),
                    .sure_from = question.limit->sure_depth(question.target, question.source,
                                                            *question.wishes.depth)};
  }
  return answer;
}

NodeAnswer answer_node(const GraphQuestion& question, const engine::Executor& executor,
                       const BlockProgress& progress) {
  const bool sends = question.source >= 0;
  NodeAnswer answer{reach_profile(question.gso, sends ? question.source : question.target,
                                  sends ? View::kFromSource : View::kToTarget, question.taus,
                                  executor, share_of_walk(question, progress))};
  for (Reach& reach : answer.profile) {
    for (double* size : {&reach.largest, &reach.smallest, &reach.total}) {
      *size = question.scaled(*size, reach.tau);
    }
  }
  return answer;
}

AllPairsAnswer answer_all_pairs(const GraphQuestion& question, const engine::Executor& executor,
                                const BlockProgress& progress) {
  AllPairsAnswer answer{.profile = extremes(question.gso, question.taus, executor, progress)};
  if (question.wishes.bounds) answer.bounds = bounds_of_graph(question, answer.profile);
  for (Extremes& at : answer.profile) {
    at.least.value = question.scaled(at.least.value, at.tau);
    at.largest.value = question.scaled(at.largest.value, at.tau);
  }
  return answer;
}

AllPairsDepth depth_of_graph(const GraphQuestion& question, const engine::Executor& executor,
                             const BlockProgress& progress) {
  return {.share = *question.wishes.depth,
          .max_tau = question.wishes.max_tau,
          .found = depth_of_all_pairs(question.gso, *question.limit, *question.wishes.depth,
                                      question.wishes.max_tau, executor, progress)};
}

WorstPairs answer_worst_pairs(const GraphQuestion& question, const engine::Executor& executor,
                              const BlockProgress& progress) {
  WorstPairs answer{.tau = question.taus.back(),
                    .order = question.wishes.order,
                    .knows_limit = question.limit != nullptr,
                    .knows_bridges = question.graph.is_symmetric()};
  std::optional<graph::Bridges> bridges;
  if (answer.knows_bridges) bridges.emplace(question.graph);
  for (const PairValue& found :
       worst_pairs(question.gso, answer.tau, question.wishes.worst, question.wishes.order,
                   question.limit.get(), executor, progress)) {
    WorstPair pair{.source = found.source,
                   .target = found.target,
                   .hops = hops_to(question.gso, found.target)[found.source],
                   .value = question.scaled(found.value, answer.tau)};
    if (question.limit != nullptr) {
      pair.limit = question.limit->limit(pair.target, pair.source);
      pair.share = found.value / pair.limit;
    }
    if (bridges) pair.bridges = bridges->separating(pair.source, pair.target);
    answer.pairs.push_back(std::move(pair));
  }
  return answer;
}

void add_depths(const GraphQuestion& question, WorstPairs& worst, const engine::Executor& executor,
                const BlockProgress& progress) {
  worst.depth_share = question.wishes.depth;
  worst.max_tau = question.wishes.max_tau;
  for (std::size_t k = 0; k < worst.pairs.size(); ++k) {
    WorstPair& pair = worst.pairs[k];
    pair.depth = depth_of_pair(question, pair.source, pair.target, executor);
    if (progress) progress(static_cast<double>(k + 1) / static_cast<double>(worst.pairs.size()));
  }
}

std::vector<double> last_map(const GraphQuestion& question, const engine::Executor& executor) {
  const std::int64_t tau = question.taus.back();
  std::vector<double> power = dense_power(question.gso, tau, executor);
  for (double& entry : power) entry = question.scaled(std::abs(entry), tau);
  return power;
}

std::vector<double> last_of_node(const GraphQuestion& question, const engine::Executor& executor) {
  const bool hears = question.target >= 0;
  const std::int64_t tau = question.taus.back();
  Walk walk(question.gso, hears ? question.target : question.source,
            hears ? View::kToTarget : View::kFromSource, executor);
  while (walk.tau() < tau) walk.step();
  std::vector<double> values;
  for (const double entry : walk.values()) values.push_back(question.scaled(std::abs(entry), tau));
  return values;
}

}  // namespace

GraphQuestion::GraphQuestion(const graph::Graph& of, graph::GsoKind kind,
                             std::vector<std::int64_t> at)
    : graph(of), gso(graph::make_gso(of, {.kind = kind})), taus(std::move(at)) {
  why_no_limit = kind != graph::GsoKind::kSymNormalized
                     ? "it is known for the operator sym_normalized only"
                     : why_no_deep_limit(graph);
  if (why_no_limit.empty()) limit = std::make_shared<DeepLimit>(graph);
}

GraphQuestion::GraphQuestion(const graph::Gso& of, std::vector<std::int64_t> at)
    : gso(of), taus(std::move(at)) {
  if (const auto found = normalised_graph(gso)) {
    graph = *found;
    why_no_limit = why_no_deep_limit(graph);
  } else {
    graph = graph_of_entries(gso);
    why_no_limit =
        "it is known for D^-1/2 M D^-1/2 of undirected graphs whose nodes have loops of weight 1";
  }
  if (why_no_limit.empty()) limit = std::make_shared<DeepLimit>(graph);
}

double scaled(double entry, double w, std::int64_t tau) {
  // What does not arrive stays 0, however large the power.
  return entry == 0.0 ? 0.0 : entry * std::pow(std::abs(w), static_cast<double>(tau));
}

std::optional<std::int64_t> GraphQuestion::steps_of_all_pairs() const {
  if (is_whole() && extremes) return wishes.depth ? wishes.max_tau : taus.back();
  return wishes.worst > 0 ? std::optional(taus.back()) : std::nullopt;
}

std::optional<std::pair<std::int64_t, std::int64_t>> usual_pair(std::string_view name,
                                                                const graph::Graph& graph) {
  if (!name.starts_with("clique-chain")) return {};
  const auto row_ptr = graph.row_ptr();
  const std::int64_t last = graph.num_nodes() - 1;
  std::int64_t first = last;
  while (first > 0 && row_ptr[first] - row_ptr[first - 1] == 2) --first;
  if (first == last) return {};
  return std::pair(first, last);
}

void check(const GraphQuestion& question, const std::string& name) {
  const GraphWishes& wishes = question.wishes;
  const std::int64_t nodes = question.graph.num_nodes();
  const bool has_limit = question.limit != nullptr;
  using base::refuse_if;
  const std::string no_limit = "there is no limit: " + question.why_no_limit;
  refuse_if(!has_limit && wishes.depth, "--depth: " + no_limit);
  refuse_if(wishes.map && nodes > kMaxDensePower,
            fmt::format("--picture map: expected at most {} nodes, got {}; take --picture curve, "
                        "or give --source",
                        kMaxDensePower, nodes));
  refuse_if(wishes.of_node && question.is_whole(),
            "--picture graph: expected --source or --target, got neither");
  refuse_if(!question.is_pair() && !question.is_whole() && (wishes.depth || wishes.bounds),
            "--depth and --bounds: expected --source and --target, or neither, got one of them");
  refuse_if(
      question.steps_of_all_pairs() && nodes > kMaxAllPairs,
      fmt::format("{}: {} nodes have too many pairs (up to {} nodes); give --source or --target",
                  name, nodes, kMaxAllPairs));
  refuse_if(!has_limit && wishes.order == Order::kShare, "--by share: " + no_limit);
}

GraphAnswer answer(const GraphQuestion& question, const engine::Executor& executor,
                   const Stages& stages) {
  const auto begin = [&](const char* stage) { return stages ? stages(stage) : BlockProgress(); };
  GraphAnswer answer = describe_graph(question);
  if (question.is_pair()) {
    answer.pair = answer_pair(question, executor, begin("S(tau)"));
  } else if (!question.is_whole()) {
    answer.node = answer_node(question, executor, begin("profile"));
  } else if (question.extremes) {
    answer.all_pairs = answer_all_pairs(question, executor, begin("extremes over all pairs"));
    if (question.wishes.depth) {
      answer.all_pairs->depth = depth_of_graph(question, executor, begin("depth of all pairs"));
    }
  }
  if (question.wishes.worst > 0) {
    answer.worst = answer_worst_pairs(question, executor, begin("worst pairs"));
    if (question.wishes.depth) add_depths(question, *answer.worst, executor, begin("their depths"));
  }
  if (question.wishes.vanishing) {
    const auto seed = static_cast<std::uint64_t>(question.wishes.seed);
    answer.vanishing = vanishing_table(question.gso, {.seed = seed, .gcn = {.seed = seed}});
  }
  if (question.wishes.map) answer.map = last_map(question, executor);
  if (question.wishes.of_node) answer.of_node = last_of_node(question, executor);
  return answer;
}

}  // namespace mpssm::analysis
