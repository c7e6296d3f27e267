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
#include "mpssm/graph/generators.h"
#include "mpssm/graph/operator_groups.h"
#include "mpssm/io/file.h"
#include "mpssm/nn/node_ranks.h"
#include "mpssm/ops/generator.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/ranks/c10d.h"
#include "mpssm/ranks/halo.h"
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
    return std::accumulate(sent.begin(), sent.end(), ranks::kRowComputedAgain * again);
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

/// ScaleQuery::grid_like.
double grid_likeness(const graph::Gso& gso) {
  const auto a = gso.view<double>();
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = a.row_ptr[i] + 1; e < a.row_ptr[i + 1]; ++e) {
      next += static_cast<std::int64_t>(a.col[e] == a.col[e - 1] + 1);
    }
  }
  return ranks::grid_likeness(static_cast<double>(next), static_cast<double>(gso.num_nonzeros()));
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
  const graph::Gso united = graph::united(data::make_operators(nodes.graph, gso, nodes.edge_table));
  query.grid_like = grid_likeness(united);
  if (query.ranks > 1.0 && query.ranks <= query.nodes) count_halo(united, query);
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

/// Processor time in nanoseconds, of the whole process unless told: what others do meanwhile hardly
/// counts.
double processor_nanoseconds(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec now{};
  clock_gettime(clock, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

template <typename Body>
double nanoseconds_of(const Body& body) {
  const double start = processor_nanoseconds();
  body();
  return processor_nanoseconds() - start;
}

/// What trainings meet is the middle, not the best.
double middle_of(std::vector<double> taken) {
  const auto middle = taken.begin() + static_cast<std::ptrdiff_t>(taken.size() / 2);
  std::nth_element(taken.begin(), middle, taken.end());
  return *middle;
}

template <typename Body>
double middle_of(int rounds, const Body& body) {
  body();  // warms up
  std::vector<double> taken(rounds);
  for (double& round : taken) round = nanoseconds_of(body);
  return middle_of(std::move(taken));
}

constexpr std::int64_t kTrialNodes = 60000;

/// Neighbours near in the order of the nodes, but next to each other by chance alone, and one of
/// ten edges anywhere: what most orders of most graphs come to.
graph::Gso trial_operator() {
  constexpr std::int64_t kEdges = 5 * kTrialNodes;
  constexpr std::int64_t kNear = 2000;
  base::Random random(0);
  graph::EdgeList edges{.num_nodes = kTrialNodes};
  for (std::int64_t e = 0; e < kEdges; ++e) {
    const std::int64_t from = random.below(kTrialNodes);
    const std::int64_t step =
        random.below(10) == 0 ? random.below(kTrialNodes) : 1 + random.below(kNear);
    edges.src.push_back(from);
    edges.dst.push_back((from + step) % kTrialNodes);
  }
  return graph::make_gso(graph::Graph::from_edges(edges));
}

/// The best case for a cache.
graph::Gso trial_grid() { return graph::make_gso(graph::make_board(kTrialNodes / 200, 200)); }

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

/// Training steps on one operator, few hops and many, by slices of channels and by rows.
class TrialSteps {
 public:
  TrialSteps(const graph::Gso& gso, std::int64_t channels)
      : gso_(gso), channels_(channels), alone_(ranks::alone()) {
    const auto rows = whole_rows(gso_, *alone_);
    for (const std::int64_t hops : {kFewHops, kManyHops}) {
      const auto model = trial_model(channels, hops);
      steps_.push_back({model, {}});
      steps_.push_back({std::make_shared<nn::NodeRanks>(model, rows), {}});
    }
  }

  void run() {
    const torch::Tensor x = torch::ones({gso_.num_nodes(), kTrialFeatures});
    const ops::GeneratorScope own_numbers(ops::make_generator(0));
    for (Step& step : steps_) {
      step.taken.push_back(
          nanoseconds_of([&] { step.network->forward(x, gso_).sum().backward(); }));
    }
  }

  /// Of a number that an entry reads.
  double gather_slices() const { return a_hop(steps_[0], steps_[2]) / gathered(); }
  double gather_rows() const { return a_hop(steps_[1], steps_[3]) / gathered(); }
  /// Of a node and number, hops and products aside.
  double number(double multiply_add) const {
    const auto c = static_cast<double>(channels_);
    const double products = 3.0 * (c * (kTrialFeatures + 1.0) + 3.0 * kTrialBlocks * c * c);
    const double rest = middle_of(steps_[0].taken) - kFewHops * a_hop(steps_[0], steps_[2]);
    const double of_node = rest / static_cast<double>(gso_.num_nodes()) - products * multiply_add;
    return std::max(0.0, of_node) /
           ranks::numbers_of_node(
               {.features = kTrialFeatures, .outputs = 1, .channels = c, .blocks = kTrialBlocks});
  }

 private:
  static constexpr std::int64_t kFewHops = 1;
  static constexpr std::int64_t kManyHops = 9;
  struct Step {
    std::shared_ptr<nn::GraphModule> network;
    std::vector<double> taken;
  };
  static double a_hop(const Step& few, const Step& many) {
    return std::max(0.0, middle_of(many.taken) - middle_of(few.taken)) / (kManyHops - kFewHops);
  }
  /// By a hop of all blocks, forward and backward.
  double gathered() const {
    return 2.0 * kTrialBlocks * static_cast<double>(gso_.num_nonzeros() * channels_);
  }

  const graph::Gso& gso_;
  std::int64_t channels_;
  std::unique_ptr<ranks::Communicator> alone_;
  std::vector<Step> steps_;
};

/// Middle time of training steps, by as many threads at once, each with a network of its own.
double step_nanoseconds(const graph::Gso& gso, int threads) {
  constexpr std::int64_t kChannels = 64;
  constexpr std::int64_t kHops = 4;
  constexpr int kSteps = 6;
  std::vector<double> taken(threads);
  const auto body = [&](int thread) {
    const auto model = trial_model(kChannels, kHops);
    const torch::Tensor x = torch::ones({gso.num_nodes(), kTrialFeatures});
    const ops::GeneratorScope own_numbers(ops::make_generator(0));
    std::vector<double> steps(kSteps);
    for (double& step : steps) {
      const double start = processor_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
      model->forward(x, gso).sum().backward();
      step = processor_nanoseconds(CLOCK_THREAD_CPUTIME_ID) - start;
    }
    taken[thread] = middle_of(std::move(steps));
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(body, thread);
  body(0);
  others.clear();  // joins
  return middle_of(std::move(taken));
}

/// ScaleCosts::sharing.
double sharing_of(const graph::Gso& gso) {
  const int cores = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 16);
  return std::max(1.0, step_nanoseconds(gso, cores) / step_nanoseconds(gso, 1));
}

/// Of a multiply-add of a product with a weight and of its gradients.
double product_nanoseconds(std::int64_t channels) {
  const torch::NoGradGuard plain;
  const torch::Tensor x = torch::ones({kTrialNodes, channels});
  const torch::Tensor w = torch::ones({channels, channels});
  const double taken = middle_of(5, [&] {
    ops::matmul(x, w);
    ops::matmul(x, w);
    ops::transposed_matmul(x, x);
  });
  return taken / (3.0 * static_cast<double>(kTrialNodes * channels * channels));
}

/// Of a node and class: the loss of all nodes as a training has it, and its gradient.
double loss_nanoseconds(std::int64_t nodes) {
  constexpr std::int64_t kClasses = 4;
  const torch::Tensor target = torch::arange(nodes) % kClasses;
  const torch::Tensor weight = torch::ones({nodes});
  const torch::Tensor output = torch::ones({nodes, kClasses}).requires_grad_();
  const double taken = middle_of(5, [&] {
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
  ranks::ScaleCosts costs{.origin = "measured on this machine"};
  constexpr std::int64_t kWidths[] = {16, 64};
  constexpr int kRounds = 6;
  const graph::Gso anywhere = trial_operator();
  const graph::Gso grid = trial_grid();
  std::vector<TrialSteps> trials;
  for (const std::int64_t width : kWidths) {
    trials.emplace_back(anywhere, width);
    trials.emplace_back(grid, width);
  }
  // In turns, so that a slow moment of the machine is not one trial's alone.
  for (int round = 0; round < kRounds; ++round) {
    for (TrialSteps& trial : trials) trial.run();
  }
  costs.multiply_add = product_nanoseconds(kWidths[1]);
  for (std::size_t i = 0; i < trials.size(); i += 2) {
    costs.gather_slices += trials[i].gather_slices() / std::size(kWidths);
    costs.gather_slices_grid += trials[i + 1].gather_slices() / std::size(kWidths);
    costs.gather_rows += trials[i].gather_rows() / std::size(kWidths);
    costs.gather_rows_grid += trials[i + 1].gather_rows() / std::size(kWidths);
  }
  for (const TrialSteps& trial : trials) {
    costs.number += trial.number(costs.multiply_add) / static_cast<double>(trials.size());
  }
  costs.sharing = sharing_of(anywhere);
  costs.output = loss_nanoseconds(kTrialNodes);
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
