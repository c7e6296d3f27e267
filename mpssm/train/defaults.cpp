// SPDX-License-Identifier: MIT
// The rules. Each is a line or two: what it looks at, what it chooses, and the words for it.
#include "mpssm/train/defaults.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <fmt/core.h>
#include <variant>

#include "mpssm/base/machine.h"
#include "mpssm/data/period.h"
#include "mpssm/graph/distances.h"
#include "mpssm/io/csv.h"

namespace mpssm::train {
namespace {

// What a training may cost, in multiply-adds: some minutes on two cores of our days.
constexpr double kGraphBudget = 8e12;
constexpr double kSeriesBudget = 4e12;
constexpr double kMostStepMib = 1024.0;

/// 12345 -> "12,345"
std::string count_text(std::int64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

/// Hops from a node that is far from `start` to the node farthest from it.
std::int64_t hops_across(const graph::Graph& graph, std::int64_t start) {
  const auto farthest = [](const std::vector<std::int32_t>& hops) {
    return std::max_element(hops.begin(), hops.end()) - hops.begin();
  };
  const std::int64_t end = farthest(graph::distances_from(graph, start));
  const std::vector<std::int32_t> hops = graph::distances_from(graph, end);
  return hops[static_cast<std::size_t>(farthest(hops))];
}

/// Of the component of the node with most neighbours, which is mostly the largest.
std::int64_t hops_across(const graph::Graph& graph) {
  if (graph.num_nodes() == 0) return 0;
  const auto row_ptr = graph.row_ptr();
  std::int64_t start = 0;
  for (std::int64_t i = 1; i < graph.num_nodes(); ++i) {
    const std::int64_t degree = row_ptr[i + 1] - row_ptr[i];
    if (degree > row_ptr[start + 1] - row_ptr[start]) start = i;
  }
  return hops_across(graph, start);
}

void look_at(const data::NodeData& data, const data::DataCard& card, DataFacts& facts) {
  facts.edges = data.graph.num_entries();
  facts.reach = hops_across(data.graph);
  facts.directed = card.directed;
  facts.homophily = card.homophily;
  if (card.split >= std::ssize(data.splits)) return;
  const std::vector<data::Part>& parts = data.splits[static_cast<std::size_t>(card.split)];
  facts.train = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == data::Part::kTrain && !std::isnan(data.target[i])) ++facts.train;
  }
}

void look_at(const data::GraphsData& data, const data::DataCard&, DataFacts& facts) {
  facts.shape = DataShape::kManyGraphs;
  facts.edges = data.edge_ptr.back();
  facts.graphs = data.num_graphs();
  // Some graphs from all over the file are enough.
  constexpr std::int64_t kLookedAt = 64;
  const std::int64_t stride = std::max<std::int64_t>(1, facts.graphs / kLookedAt);
  for (std::int64_t g = 0; g < facts.graphs; g += stride) {
    const auto first = data.edge_ptr[g];
    const auto last = data.edge_ptr[g + 1];
    graph::EdgeList list{.num_nodes = data.node_ptr[g + 1] - data.node_ptr[g]};
    list.src.assign(data.edge_src.begin() + first, data.edge_src.begin() + last);
    list.dst.assign(data.edge_dst.begin() + first, data.edge_dst.begin() + last);
    facts.reach = std::max(facts.reach, hops_across(graph::Graph::from_edges(list)));
  }
}

void look_at(const data::SeriesData& data, const data::DataCard& card, DataFacts& facts) {
  facts.shape = DataShape::kSeries;
  facts.edges = data.graph.num_entries();
  facts.directed = card.directed;
  facts.lags = data.lags;
  const std::int64_t steps = std::min(facts.train + data.lags, data.num_steps);
  for (std::int64_t i = 0; i < steps * data.num_nodes; ++i) {
    if (data::is_missing(data, data.values[i * data.num_features])) ++facts.missing;
  }
}

/// Sets one setting after the other, each with its reason; those that were given stay.
class Rules {
 public:
  Rules(const DataFacts& facts, Config& config) : facts_(facts), config_(config) {}

  std::vector<Choice> choose() {
    switch (facts_.shape) {
      case DataShape::kOneGraph:
        for_one_graph();
        break;
      case DataShape::kManyGraphs:
        for_graphs();
        break;
      case DataShape::kSeries:
        for_series();
        break;
    }
    return std::move(choices_);
  }

 private:
  void set(const std::string& key, const std::string& value, std::string because) {
    const bool given = config_.given.contains(key);
    if (!given) {
      apply_setting(config_, key + "=" + value);
      config_.given.erase(key);
    }
    for (const Setting& setting : settings_of(config_)) {
      if (setting.key != key) continue;
      choices_.push_back({key, setting.value, given ? "given" : std::move(because), given});
    }
  }
  void set(const std::string& key, std::integral auto value, std::string because) {
    set(key, std::to_string(value), std::move(because));
  }
  void set(const std::string& key, std::floating_point auto value, std::string because) {
    set(key, io::number_text(value), std::move(because));
  }

  std::string samples() const {
    const char* what = facts_.shape == DataShape::kSeries       ? "windows"
                       : facts_.shape == DataShape::kManyGraphs ? "graphs"
                                                                : "labelled nodes";
    return fmt::format("{} {} to train on", count_text(facts_.train), what);
  }

  /// Multiply-adds of a pass over all training data, forward and backward: three products of nodes
  /// by a square, and a hop for each entry.
  double pass_cost(double nodes, double entries, double hops) const {
    constexpr double kProducts = 9.0;
    constexpr double kHopPasses = 2.0;
    const auto channels = static_cast<double>(config_.model.channels);
    return static_cast<double>(config_.model.blocks) *
           (kProducts * nodes * channels * channels + kHopPasses * hops * entries * channels);
  }

  /// As many epochs as the budget has, within bounds.
  void set_epochs(double cost, double budget, std::int64_t least, std::int64_t most) {
    const auto fitting = static_cast<std::int64_t>(std::min(budget / std::max(cost, 1.0), 1e9));
    set("train.epochs", std::clamp(fitting, least, most),
        fmt::format("{:.2g} multiply-adds an epoch, a budget of {:.0e}, {} to {} epochs", cost,
                    budget, least, most));
  }

  void set_operator() {
    if (facts_.directed) {
      set("model.gso", "random_walk", "edges run one way: a node takes the mean of what comes in");
    } else {
      set("model.gso", "sym_normalized", "edges count both ways");
    }
  }

  void set_schedule(double warmup_share) {
    set("train.schedule", "cosine", "a large rate first, a small one at the end");
    const double epochs = static_cast<double>(config_.train.epochs);
    set("train.warmup_epochs", std::round(std::max(1.0, warmup_share * epochs)),
        fmt::format("{:.0f} % of the epochs", 100.0 * warmup_share));
  }

  /// Evaluations, and how many without gain end a training.
  void set_stopping(std::int64_t evaluations, std::int64_t patience) {
    const std::int64_t every = std::max<std::int64_t>(1, config_.train.epochs / evaluations);
    set("train.eval_every", every,
        every == 1 ? "after each epoch" : fmt::format("about {} evaluations", evaluations));
    set("train.patience", patience,
        fmt::format("ends after {} evaluations without gain on validation", patience));
  }

  void for_one_graph() {
    const std::int64_t train = facts_.train;
    const bool is_regression = facts_.task == data::Task::kNodeRegression;
    const bool is_small = train < 1000;
    set("model.channels", train >= 5000 && facts_.features >= 100 ? 128 : 64,
        fmt::format("{}, {} features (128 from 5,000 with 100 features on, else 64)", samples(),
                    count_text(facts_.features)));
    // On one made graph of like neighbours with 140 labels networks with a dense W did as well as a
    // GCN, and the diagonal ones that were tried, whose channels start at phases of all kinds,
    // worse.
    const bool adds_up = is_small && likeness() > 0.4;
    set("model.state", adds_up ? "dense" : "stable",
        fmt::format("{}{}: {}", samples(), likeness_text(),
                    adds_up ? "few, and neighbours alike" : "dense only below 1,000 and alike"));
    set("model.blocks",
        is_small                              ? 2
        : train >= 4000 && facts_.reach >= 24 ? 8
                                              : 4,
        fmt::format("{}, {} hops across (2 below 1,000, 8 from 4,000 with 24 hops on, else 4)",
                    samples(), facts_.reach));
    const std::int64_t blocks = std::max<std::int64_t>(config_.model.blocks, 1);
    set("model.hops", std::clamp<std::int64_t>((facts_.reach + blocks - 1) / blocks, 1, 4),
        fmt::format("{} hops across, blocks: {}, at most 4 each", facts_.reach, blocks));
    set("model.residual", "true", "raw features stay beside the propagated ones");
    set_operator();
    set("model.norm", "layer", "does not depend on how many nodes there are");
    const double dropout = is_small ? 0.5 : train < 50'000 ? 0.4 : 0.2;
    set("model.dropout", is_regression ? dropout / 2.0 : dropout,
        fmt::format("{}{} (0.5 below 1,000, 0.4 below 50,000, else 0.2)", samples(),
                    is_regression ? ", half of it for numbers" : ""));
    // Parts of a graph are trained by ranks of which none could draw the mask of all nodes.
    const bool has_many_features =
        facts_.features >= 100 && train < 5 * facts_.features && !facts_.in_parts;
    set("model.input_dropout", has_many_features && !is_regression ? 0.5 : 0.0,
        fmt::format("{}, {} features (0.5 from 100 features on with fewer than 5 samples for each; "
                    "numbers and graphs in parts 0)",
                    samples(), count_text(facts_.features)));
    set("train.weight_decay", is_small ? 0.5 : 0.01,
        fmt::format("{} (0.5 below 1,000, else 0.01)", samples()));
    set("train.lr", is_small ? 3e-3 : 2e-3, "with a cosine, below 1,000 samples 3e-3, else 2e-3");
    const double cost =
        pass_cost(static_cast<double>(facts_.nodes), static_cast<double>(facts_.edges),
                  static_cast<double>(config_.model.hops));
    set_epochs(cost, kGraphBudget, 200, is_small ? 300 : 800);
    set_schedule(0.05);
    set_stopping(100, 30);
  }

  /// How much more alike neighbours are than by chance: 0 as by chance, 1 always.
  double likeness() const {
    if (!facts_.homophily || facts_.homophily->by_chance >= 1.0) return 0.0;
    const auto& of = *facts_.homophily;
    return (of.share - of.by_chance) / (1.0 - of.by_chance);
  }

  std::string likeness_text() const {
    if (!facts_.homophily) return {};
    return fmt::format(", {:.2f} of the edges join one class, {:.2f} by chance",
                       facts_.homophily->share, facts_.homophily->by_chance);
  }

  void for_graphs() {
    const std::int64_t train = facts_.train;
    set("model.channels", train < 100 ? 32 : 64, fmt::format("{} (32 below 100)", samples()));
    set("model.blocks", 4, "what we start from");
    const std::int64_t blocks = std::max<std::int64_t>(config_.model.blocks, 1);
    set("model.hops", std::clamp<std::int64_t>((facts_.reach + blocks - 1) / blocks, 1, 8),
        fmt::format("the widest graph looked at is {} hops across, at most 8 in each of {} blocks",
                    facts_.reach, blocks));
    set_operator();
    const bool is_regression =
        facts_.task == data::Task::kGraphRegression || facts_.task == data::Task::kNodeRegression;
    set("model.dropout",
        is_regression  ? 0.0
        : train < 1000 ? 0.2
                       : 0.1,
        fmt::format("{} (0.2 below 1,000, else 0.1; numbers 0)", samples()));
    set("train.weight_decay", train < 1000 ? 0.1 : 0.01,
        fmt::format("{} (0.1 below 1,000, else 0.01)", samples()));
    const double share =
        static_cast<double>(train) / static_cast<double>(std::max<std::int64_t>(facts_.graphs, 1));
    const double nodes = share * static_cast<double>(facts_.nodes);
    const double entries = share * static_cast<double>(facts_.edges);
    set_batch(nodes / static_cast<double>(std::max<std::int64_t>(train, 1)),
              std::clamp<std::int64_t>(train / 8, 16, 64));
    set("train.lr", 1e-3, "with a cosine");
    set_epochs(pass_cost(nodes, entries, static_cast<double>(config_.model.hops)), kGraphBudget, 20,
               300);
    set_schedule(0.05);
    set_stopping(300, 60);
  }

  /// Halved until a step fits.
  void set_batch(double nodes_of_sample, std::int64_t wanted) {
    const double limit =
        facts_.free_mib > 0.0 ? std::min(kMostStepMib, 0.5 * facts_.free_mib) : kMostStepMib;
    constexpr double kBytes = 4.0 * 6.0;  // floats kept of each number, by each block
    const double mib_of_sample = nodes_of_sample * static_cast<double>(config_.model.channels) *
                                 static_cast<double>(config_.model.blocks) * kBytes / (1 << 20);
    std::int64_t batch = wanted;
    while (batch > 1 && mib_of_sample * static_cast<double>(batch) > limit) batch /= 2;
    set("train.batch", batch,
        fmt::format("{:.2g} MiB each, {:.0f} MiB a step at most", mib_of_sample, limit));
  }

  void for_series() {
    const auto readings = static_cast<double>(facts_.train * facts_.nodes);
    const bool is_large = readings >= 1e5;
    const std::string seen = fmt::format("{} at {} nodes", samples(), count_text(facts_.nodes));
    set("model.channels", 32, seen + ": a small network beside a line");
    set("model.blocks", 1, seen + ": a small network beside a line");
    set("model.skip", "true", "starts at the ridge regression");
    set("model.node_embedding", facts_.train >= 1000 ? "true" : "false",
        fmt::format("{} (a vector for each node from 1,000 on)", samples()));
    set_operator();
    if (facts_.missing > 0) {
      const std::string gaps = fmt::format("{} readings are missing", count_text(facts_.missing));
      set("data.fill", "last", gaps + ": the last one before stands for them");
      set("data.mark_missing", "true", gaps + ": the network is told which");
    }
    set("model.dropout", is_large ? 0.0 : 0.1, fmt::format("{} (0.1 below 100,000 in all)", seen));
    set("train.weight_decay", 1e-3, "what we start from");
    set_batch(static_cast<double>(facts_.lags * facts_.nodes), 32);
    set("train.lr", 2e-3, "with a cosine");
    const double steps = static_cast<double>(facts_.train * facts_.lags);
    const double cost = pass_cost(steps * static_cast<double>(facts_.nodes),
                                  steps * static_cast<double>(facts_.edges), 1.0);
    set_epochs(cost, kSeriesBudget, 3, 60);
    set_schedule(0.05);
    set_stopping(1000, 10);
  }

  const DataFacts& facts_;
  Config& config_;
  std::vector<Choice> choices_;
};

}  // namespace

DataFacts facts_of(const data::Dataset& dataset, std::int64_t split) {
  const data::DataCard card = data::make_card(dataset, split);
  DataFacts facts{.task = dataset.task,
                  .train = card.train,
                  .nodes = card.nodes,
                  .features = card.features,
                  .free_mib = base::available_mib()};
  std::visit([&](const auto& content) { look_at(content, card, facts); }, dataset.content);
  return facts;
}

std::vector<Choice> choose_defaults(const DataFacts& facts, Config& config) {
  return Rules(facts, config).choose();
}

std::string to_line(const std::vector<Choice>& choices) {
  std::string line;
  for (const Choice& choice : choices) {
    if (choice.given) continue;
    line += fmt::format("{}{}={}", line.empty() ? "" : " ", choice.key, choice.value);
  }
  return line;
}

std::vector<std::string> usual_axes(DataShape shape) {
  if (shape == DataShape::kSeries) {
    return {"model.channels=16,32,64", "model.blocks=1,2",
            "model.dropout=0,0.1,0.3", "model.node_embedding=false,true",
            "train.lr=5e-4,1e-3,3e-3", "train.weight_decay=0,1e-3,1e-1"};
  }
  return {"model.channels=32,64,128", "model.blocks=1,2,4,8",
          "model.hops=1,2,4,8",       "model.dropout=0,0.2,0.4,0.6",
          "train.lr=5e-4,1e-3,3e-3",  "train.weight_decay=0,0.01,0.1,1"};
}

}  // namespace mpssm::train
