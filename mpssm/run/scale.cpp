// SPDX-License-Identifier: MIT
#include "mpssm/run/scale.h"

#include <algorithm>
#include <ctime>
#include <fmt/core.h>
#include <numeric>
#include <thread>
#include <utility>

#include <ATen/ops/cross_entropy_loss.h>
#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/base/random.h"
#include "mpssm/data/edge_operators.h"
#include "mpssm/data/partition.h"
#include "mpssm/graph/operator_groups.h"
#include "mpssm/io/file.h"
#include "mpssm/nn/node_ranks.h"
#include "mpssm/ops/generator.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/ranks/c10d.h"
#include "mpssm/run/experiment.h"
#include "mpssm/run/partition.h"
#include "mpssm/train/preset.h"

namespace mpssm::run {
namespace {

// ---- what the data are ----

/// How many nodes of each part others read within so many hops, and of how many each part has to
/// hold rows then.
struct Reads {
  std::vector<double> sent;
  std::vector<double> held;
  double again = 0.0;  // rows of others that all parts compute
  double all() const {
    return std::accumulate(sent.begin(), sent.end(), nn::kRowComputedAgain * again);
  }
};

Reads reads_within(std::int64_t hops, const graph::Gso& gso, const std::vector<std::int32_t>& part,
                   std::int64_t parts) {
  Reads reads{.sent = std::vector<double>(parts, 0.0), .held = std::vector<double>(parts, 0.0)};
  const auto a = gso.view<double>();
  std::vector<std::int32_t> seen_by(part.size(), -1);
  for (std::int32_t reader = 0; reader < parts; ++reader) {
    std::vector<std::int64_t> near;  // nodes that the next hop starts from
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] != reader) continue;
      seen_by[i] = reader;
      near.push_back(static_cast<std::int64_t>(i));
    }
    const auto own = static_cast<double>(near.size());
    reads.held[reader] = own;
    for (std::int64_t hop = 0; hop < hops; ++hop) {
      std::vector<std::int64_t> next;
      reads.again += reads.held[reader] - own;
      for (const std::int64_t i : near) {
        for (std::int64_t e = a.row_ptr[i]; e < a.row_ptr[i + 1]; ++e) {
          if (std::exchange(seen_by[a.col[e]], reader) != reader) next.push_back(a.col[e]);
        }
      }
      for (const std::int64_t i : next) reads.sent[part[i]] += 1.0;
      reads.held[reader] += static_cast<double>(next.size());
      near = std::move(next);
    }
  }
  return reads;
}

void count_halo(const graph::Gso& gso, ranks::ScaleQuery& query) {
  const auto parts = static_cast<std::int64_t>(query.ranks);
  const graph::PartitionMethod method = graph::best_partition_method(gso);
  const std::vector<std::int32_t> part = graph::partition_nodes(gso, parts, method);
  const Reads at_hop = reads_within(1, gso, part, parts);
  query.halo = *std::max_element(at_hop.sent.begin(), at_hop.sent.end());
  query.halo_from = fmt::format("as {} cuts it, the most of a rank", graph::to_string(method));
  // As nn::NodeRows decides, but for A' of a graph that is not symmetric, which is taken for A.
  const auto hops = static_cast<std::int64_t>(query.hops);
  if (hops < 2) return;
  const Reads in_all = reads_within(hops, gso, part, parts);
  bool fits = in_all.all() < query.hops * at_hop.all();
  for (std::int64_t p = 0; p < parts; ++p) {
    fits = fits && in_all.held[p] <= nn::kMostRingRows * at_hop.held[p];
  }
  if (fits) query.ring_halo = *std::max_element(in_all.sent.begin(), in_all.sent.end());
}

void take_model(const train::ModelConfig& model, ranks::ScaleQuery& query) {
  query.channels = static_cast<double>(model.channels);
  query.blocks = static_cast<double>(model.blocks);
  query.hops = static_cast<double>(model.hops);
  query.dense = model.state == nn::StateKind::kDense;
}

void count(const data::NodeData& nodes, const graph::GsoGroups& gso, ranks::ScaleQuery& query) {
  query.nodes = static_cast<double>(nodes.graph.num_nodes());
  query.edges = static_cast<double>(nodes.graph.num_entries()) / 2.0;
  query.features = static_cast<double>(nodes.features.columns);
  query.outputs =
      nodes.class_names.size() > 2 ? static_cast<double>(nodes.class_names.size()) : 1.0;
  if (query.ranks > 1.0 && query.ranks <= query.nodes) {
    count_halo(graph::united(data::make_operators(nodes.graph, gso, nodes.edge_table)), query);
  }
}

void count(const data::GraphsData& graphs, std::int64_t batch, ranks::ScaleQuery& query) {
  const auto all = static_cast<double>(std::max<std::int64_t>(graphs.num_graphs(), 1));
  query.graphs = std::min(all, static_cast<double>(batch));
  query.nodes = static_cast<double>(graphs.node_ptr.back()) / all * query.graphs;
  query.edges = static_cast<double>(graphs.edge_ptr.back()) / 2.0 / all * query.graphs;
}

void count(const data::SeriesData& series, std::int64_t batch, ranks::ScaleQuery& query) {
  query.graphs = static_cast<double>(batch);
  const double copies = query.graphs * static_cast<double>(series.lags);
  query.nodes = static_cast<double>(series.num_nodes) * copies;
  query.edges = static_cast<double>(series.graph.num_entries()) / 2.0 * copies;
  query.features = static_cast<double>(series.num_features);
  query.outputs = static_cast<double>(series.horizon);
  query.hops = 1;  // of each step
}

// ---- what work costs ----

/// Processor time of the whole process in nanoseconds: what others do meanwhile hardly counts.
double processor_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

template <typename Body>
double least_of(int rounds, const Body& body) {
  double least = 0.0;
  for (int round = 0; round <= rounds; ++round) {
    const double start = processor_nanoseconds();
    body();
    const double taken = processor_nanoseconds() - start;
    if (round == 1 || (round > 1 && taken < least)) least = taken;  // the first warms up
  }
  return least;
}

/// Neighbours near in the order of the nodes, one of ten edges anywhere: neither the best case for
/// a cache, as a grid is, nor the worst.
graph::Gso trial_operator() {
  constexpr std::int64_t kNodes = 60000;
  constexpr std::int64_t kEdges = 5 * kNodes;
  constexpr std::int64_t kNear = 100;
  base::Random random(0);
  graph::EdgeList edges{.num_nodes = kNodes};
  for (std::int64_t e = 0; e < kEdges; ++e) {
    const std::int64_t from = random.below(kNodes);
    const std::int64_t step =
        random.below(10) == 0 ? random.below(kNodes) : 1 + random.below(kNear);
    edges.src.push_back(from);
    edges.dst.push_back((from + step) % kNodes);
  }
  return graph::make_gso(graph::Graph::from_edges(edges));
}

constexpr std::int64_t kTrialBlocks = 2;
constexpr std::int64_t kTrialFeatures = 8;

std::shared_ptr<nn::ModelImpl> trial_model(std::int64_t channels, std::int64_t hops) {
  const ops::DefaultGeneratorScope numbers(ops::make_generator(0));
  nn::ModelOptions options;
  options.in_channels = kTrialFeatures;
  options.hidden_channels = channels;
  options.num_blocks = kTrialBlocks;
  options.hops = hops;
  options.dropout = 0.2;
  options.plan = engine::Plan::kDiagonal;
  auto model = std::make_shared<nn::ModelImpl>(options);
  model->train();
  return model;
}

double step_nanoseconds(nn::GraphModule& network, const graph::Gso& gso) {
  const torch::Tensor x = torch::ones({gso.num_nodes(), kTrialFeatures});
  return least_of(3, [&] {
    const ops::GeneratorScope own_numbers(ops::make_generator(0));
    network.forward(x, gso).sum().backward();
  });
}

/// All nodes on one rank, for the price of hops by whole rows.
std::shared_ptr<const nn::NodeRows> whole_rows(const graph::Gso& gso, ranks::Communicator& alone) {
  nn::NodeRows::Given given{.ranks = alone,
                            .all_bounds = {0, gso.num_nodes()},
                            .number = std::vector<std::int64_t>(gso.num_nodes()),
                            .rows = {}};
  std::iota(given.number.begin(), given.number.end(), 0);
  given.rows.row_ptr.assign(gso.row_ptr().begin(), gso.row_ptr().end());
  given.rows.col.assign(gso.col().begin(), gso.col().end());
  given.rows.value.assign(gso.values<float>().begin(), gso.values<float>().end());
  return std::make_shared<const nn::NodeRows>(std::move(given));
}

/// Of a node and class: the loss of all nodes as a training has it, and its gradient.
double loss_nanoseconds(std::int64_t nodes) {
  constexpr std::int64_t kClasses = 4;
  const torch::Tensor target = torch::arange(nodes) % kClasses;
  const torch::Tensor weight = torch::ones({nodes});
  const torch::Tensor output = torch::ones({nodes, kClasses}).requires_grad_();
  const double taken = least_of(3, [&] {
    (at::cross_entropy_loss(output, target, {}, at::Reduction::None) * weight).sum().backward();
  });
  return taken / static_cast<double>(nodes * kClasses);
}

/// Two ranks as threads, processor time of one of them for a call that sends so many bytes.
double exchange_nanoseconds(std::int64_t bytes, int calls) {
  const auto point = ranks::open_meeting_point();
  double taken = 0.0;
  const auto body = [&](std::int64_t rank) {
    const auto all = ranks::join({.rank = rank,
                                  .size = 2,
                                  .address = "127.0.0.1",
                                  .port = point->port(),
                                  .agent_has_store = true,
                                  .is_one_machine = true},
                                 60.0);
    std::vector<std::int64_t> sizes = {bytes, bytes};
    sizes[rank] = 0;
    std::vector<char> sent(bytes);
    std::vector<char> received(bytes);
    const double start = processor_nanoseconds();
    for (int i = 0; i < calls; ++i) {
      std::copy(received.begin(), received.end(), sent.begin());  // as rows are packed
      all->exchange(sent.data(), sizes, received.data(), sizes);
    }
    if (rank == 0) taken = (processor_nanoseconds() - start) / 2.0 / calls;
  };
  std::thread other(body, 1);
  body(0);
  other.join();
  return taken;
}

}  // namespace

ranks::ScaleQuery scale_query(const ScaleRequest& request) {
  ranks::ScaleQuery query = request.query;
  if (!request.network.empty()) query.bits_per_second = ranks::bits_from_text(request.network);
  if (request.data.empty()) {
    if (query.nodes >= 1.0 && query.edges >= 0.0) return query;
    throw base::Error("plan: expected data, or --nodes and --edges");
  }
  train::Config config = train::preset_config(request.data);
  config.data.name = request.data;
  for (const std::string& setting : request.settings) train::apply_setting(config, setting);
  if (data::is_partition(request.data)) {
    const data::PartitionIndex index = data::read_partition_index(request.data);
    query.nodes = static_cast<double>(index.num_nodes());
    query.edges = (static_cast<double>(index.num_entries()) - query.nodes) / 2.0;
    query.features = static_cast<double>(index.features);
    query.outputs =
        index.class_names.size() > 2 ? static_cast<double>(index.class_names.size()) : 1.0;
    query.ranks = static_cast<double>(index.num_pieces());
    query.halo = 0.0;
    for (const auto& piece : index.pieces) {
      query.halo = std::max(query.halo, static_cast<double>(piece.halo));
    }
    query.halo_from = "as the index says, the most of a part";
    if (config.by_rules) train::choose_defaults(facts_of(index), config);
    take_model(config.model, query);
    return query;
  }
  const Explained explained = explain(config);
  const train::ModelConfig& model = explained.config.model;
  take_model(model, query);
  const data::Dataset& dataset = *explained.dataset;
  if (const auto* nodes = std::get_if<data::NodeData>(&dataset.content)) {
    count(*nodes, model.gso, query);
  } else if (const auto* graphs = std::get_if<data::GraphsData>(&dataset.content)) {
    count(*graphs, explained.config.train.batch, query);
  } else {
    count(std::get<data::SeriesData>(dataset.content), explained.config.train.batch, query);
  }
  return query;
}

ranks::ScaleCosts measure_scale_costs() {
  const std::int64_t threads = ops::num_threads();
  ops::set_num_threads(1);
  const graph::Gso gso = trial_operator();
  const auto nodes = static_cast<double>(gso.num_nodes());
  const auto alone = ranks::alone();
  const auto rows = whole_rows(gso, *alone);
  ranks::ScaleCosts costs{.origin = "measured on this machine"};
  constexpr std::int64_t kFewHops = 1;
  constexpr std::int64_t kManyHops = 9;
  constexpr double kWidths[] = {16.0, 64.0};
  double at_nodes[2] = {};
  for (const int i : {0, 1}) {
    const auto channels = static_cast<std::int64_t>(kWidths[i]);
    const auto few = trial_model(channels, kFewHops);
    const auto many = trial_model(channels, kManyHops);
    nn::NodeRanks few_by_rows(few, rows);
    nn::NodeRanks many_by_rows(many, rows);
    // Numbers that one hop more gathers, forward and backward.
    const double gathered =
        2.0 * kTrialBlocks * static_cast<double>(gso.num_nonzeros()) * kWidths[i];
    const double hops = kManyHops - kFewHops;
    const double short_step = step_nanoseconds(*few, gso);
    const double of_slices = (step_nanoseconds(*many, gso) - short_step) / hops / gathered;
    const double of_rows =
        (step_nanoseconds(many_by_rows, gso) - step_nanoseconds(few_by_rows, gso)) / hops /
        gathered;
    costs.gather_slices += of_slices / 2.0;
    costs.gather_rows += of_rows / 2.0;
    at_nodes[i] = (short_step - kFewHops * gathered * of_slices) / nodes;
  }
  // At a node: 3 (C (F + 1) + 3 b C^2) products and b C numbers, for two widths C.
  const auto products = [](double c) {
    return 3.0 * (c * (kTrialFeatures + 1.0) + 3.0 * kTrialBlocks * c * c);
  };
  const double ratio = kWidths[1] / kWidths[0];
  costs.multiply_add = std::max(0.0, (at_nodes[1] - ratio * at_nodes[0]) /
                                         (products(kWidths[1]) - ratio * products(kWidths[0])));
  costs.number =
      (at_nodes[0] - products(kWidths[0]) * costs.multiply_add) / (kTrialBlocks * kWidths[0]);
  costs.output = loss_nanoseconds(gso.num_nodes());
  if (ranks::is_available()) {
    constexpr std::int64_t kLarge = std::int64_t{8} << 20;
    costs.exchange = exchange_nanoseconds(64, 200);
    costs.byte = std::max(0.0, exchange_nanoseconds(kLarge, 6) - costs.exchange) / kLarge;
  }
  ops::set_num_threads(threads);
  return costs;
}

ranks::ScaleCosts scale_costs(const ScaleRequest& request) {
  if (!request.measure.empty()) {
    const ranks::ScaleCosts costs = measure_scale_costs();
    io::write_file(request.measure, ranks::to_text(costs));
    return costs;
  }
  if (request.costs.empty()) return ranks::builtin_scale_costs();
  return ranks::scale_costs_from_text(io::read_file(request.costs, 1 << 16),
                                      request.costs.string());
}

std::string answer(const ScaleRequest& request) {
  const ranks::ScaleQuery query = scale_query(request);
  const ranks::ScaleCosts costs = scale_costs(request);
  return request.json ? ranks::plan_json(query, costs) : ranks::plan_text(query, costs);
}

}  // namespace mpssm::run
