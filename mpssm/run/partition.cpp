// SPDX-License-Identifier: MIT
#include "mpssm/run/partition.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "mpssm/base/error.h"
#include "mpssm/base/machine.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/data_card.h"
#include "mpssm/graph/distances.h"
#include "mpssm/io/file.h"
#include "mpssm/io/json_text.h"
#include "mpssm/nn/node_ranks.h"
#include "mpssm/report/data_card_text.h"
#include "mpssm/task/node_share.h"
#include "mpssm/task/problem.h"

namespace mpssm::run {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

ordered_json facts_to_json(const train::DataFacts& facts) {
  ordered_json json = {{"train", facts.train}, {"nodes", facts.nodes},
                       {"edges", facts.edges}, {"features", facts.features},
                       {"reach", facts.reach}, {"directed", facts.directed}};
  if (facts.homophily) {
    json["homophily"] = {facts.homophily->share, facts.homophily->by_chance};
  }
  return json;
}

train::DataFacts facts_from_json(const ordered_json& json, data::Task task) {
  train::DataFacts facts{.task = task, .free_mib = base::available_mib()};
  json.at("train").get_to(facts.train);
  json.at("nodes").get_to(facts.nodes);
  json.at("edges").get_to(facts.edges);
  json.at("features").get_to(facts.features);
  json.at("reach").get_to(facts.reach);
  json.at("directed").get_to(facts.directed);
  if (json.contains("homophily")) {
    facts.homophily = {.share = json["homophily"].at(0), .by_chance = json["homophily"].at(1)};
  }
  return facts;
}

/// What read() makes of the part of the index that is ours.
template <typename Read>
auto from_more(const data::PartitionIndex& index, const Read& read) {
  try {
    return read(ordered_json::parse(index.more));
  } catch (const ordered_json::exception&) {
    throw base::Error(index.dataset, "the index of its parts is damaged; cut the data again");
  }
}

graph::PartitionMethod method_of(const PartitionRequest& request, const graph::Gso& gso) {
  if (request.method == "auto") return graph::best_partition_method(gso);
  if (const auto method = graph::table_of(graph::PartitionMethod{}).find(request.method)) {
    return *method;
  }
  throw base::Error(
      {.where = "--method", .expected = "auto, metis or ranges", .got = request.method});
}

/// As the rules choose it where nobody does.
graph::GsoKind kind_of(const PartitionRequest& request, const graph::Graph& graph) {
  if (request.gso == "auto") {
    return graph.is_symmetric() ? graph::GsoKind::kSymNormalized : graph::GsoKind::kRandomWalk;
  }
  if (const auto kind = graph::table_of(graph::GsoKind{}).find(request.gso)) return *kind;
  throw base::Error({.where = "--gso",
                     .expected = "one operator for all channels, one of " +
                                 graph::table_of(graph::GsoKind{}).names(),
                     .got = base::printable(request.gso)});
}

/// Shares of one number for each part: the least, the most.
template <typename Of>
std::string range_of(const data::PartitionIndex& index, const Of& of) {
  std::int64_t least = of(index.pieces[0]);
  std::int64_t most = least;
  for (const data::PartitionIndex::Piece& piece : index.pieces) {
    least = std::min(least, of(piece));
    most = std::max(most, of(piece));
  }
  return least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
}

/// The rest of a dataset, which nobody has whole.
std::unique_ptr<data::Dataset> dataset_of(const data::PartitionIndex& index, const fs::path& folder,
                                          data::NodeData nodes) {
  auto dataset = std::make_unique<data::Dataset>();
  dataset->name = index.dataset;
  dataset->task = index.task;
  dataset->metric = index.metric;
  dataset->protocol = index.protocol;
  dataset->source = index.source;
  // The index holds fingerprints of all parts.
  dataset->files = data::input_files(folder.string());
  dataset->content = std::move(nodes);
  return dataset;
}

std::string by_hand(const data::PartitionIndex& index, std::int64_t parts, std::string_view gso) {
  return fmt::format("mpssm data partition {} --parts {} --gso {} --out DIR", index.source, parts,
                     gso);
}

void check_partition(const train::Config& config, const data::PartitionIndex& index,
                     std::int64_t num_ranks) {
  check_num_ranks(index, num_ranks);
  if (!config.model.gso.is_single() || config.model.gso.is_of_edges()) {
    throw base::Error({.where = "model.gso",
                       .expected = "one operator for all channels of a graph in parts",
                       .got = to_string(config.model.gso)});
  }
  if (config.model.gso != index.gso) {
    throw base::Error(
        {.where = "model.gso",
         .expected = fmt::format("{}, which the graph was cut with", graph::to_string(index.gso)),
         .got = std::string(graph::to_string(config.model.gso)),
         .hint = by_hand(index, index.num_pieces(), graph::to_string(config.model.gso))});
  }
  if (config.data.split >= index.num_splits) {
    throw base::Error("data.split", fmt::format("{} has splits 0 to {}, got {}", index.dataset,
                                                index.num_splits - 1, config.data.split));
  }
  if (!config.data.rewired.empty()) {
    throw base::Error(
        "data.rewired: expected a whole graph, not one in parts; rewire before it is cut");
  }
}

}  // namespace

PartitionedGraph partitioned_graph(const data::PartitionIndex& index) {
  return from_more(index, [](const ordered_json& more) -> PartitionedGraph {
    const ordered_json& whole = more.at("graph");
    return {.edges = whole.at("edges"),
            .components = whole.at("components"),
            .is_symmetric = whole.at("symmetric")};
  });
}

train::DataFacts facts_of(const data::PartitionIndex& index) {
  return from_more(index, [&](const ordered_json& more) {
    train::DataFacts facts = facts_from_json(more.at("facts"), index.task);
    facts.in_parts = true;
    return facts;
  });
}

void check_num_ranks(const data::PartitionIndex& index, std::int64_t num_ranks) {
  if (num_ranks <= index.num_pieces()) return;
  throw base::Error(
      {.where = "--ranks",
       .expected = fmt::format("at most {}, a part of the graph for each", index.num_pieces()),
       .got = std::to_string(num_ranks),
       .hint = by_hand(index, num_ranks, graph::to_string(index.gso))});
}

std::string write_partition(const std::string& name, const data::LoadOptions& load,
                            const PartitionRequest& request) {
  const data::Dataset dataset = data::load(name, load);
  const auto* nodes = std::get_if<data::NodeData>(&dataset.content);
  if (nodes == nullptr) {
    throw base::Error(dataset.name, fmt::format("expected one graph to cut, got data for {}",
                                                data::to_string(dataset.task)));
  }
  const graph::Gso gso = graph::make_gso(nodes->graph, {.kind = kind_of(request, nodes->graph)});
  data::PartitionIndex index;
  index.method = method_of(request, gso);
  index.source = data::is_name(name) ? name : fs::weakly_canonical(name).string();
  const std::vector<std::int32_t> part = graph::partition_nodes(gso, request.parts, index.method);
  const data::DataCard card = data::make_card(dataset, 0);
  const DataPins pins{.learned = {.columns = nodes->columns, .class_names = nodes->class_names}};
  const ordered_json more = {{"about", report::text_of(card)},
                             {"card", ordered_json::parse(report::to_json(card))},
                             {"facts", facts_to_json(train::facts_of(dataset, 0))},
                             {"graph",
                              {{"edges", nodes->graph.num_edges()},
                               {"components", graph::components(nodes->graph).count},
                               {"symmetric", nodes->graph.is_symmetric()}}},
                             {"pins", to_json(pins)}};
  index.more = io::json_text(more);
  data::write_partition(request.out, dataset, gso, part, index);
  index = data::read_partition_index(request.out);
  return fmt::format(
      "wrote {}: {} nodes in {} part(s) by {}, {} nodes each, {} of others beside them",
      request.out.string(), index.num_nodes(), index.num_pieces(), graph::to_string(index.method),
      range_of(index, [](const auto& piece) { return piece.nodes; }),
      range_of(index, [](const auto& piece) { return piece.halo; }));
}

Experiment set_up_partition(const train::Config& config, ranks::Communicator& ranks,
                            const DataPins* pins) {
  train::check(config);
  const fs::path folder = fs::weakly_canonical(config.data.name);
  const data::PartitionIndex index = data::read_partition_index(folder);
  Experiment experiment;
  experiment.config = config;
  experiment.config.data.name = folder.string();
  if (!config.given.contains("model.gso")) {
    experiment.config.model.gso = index.gso;
    experiment.config.given.insert("model.gso");
  }
  if (config.by_rules && pins == nullptr) {
    experiment.choices = train::choose_defaults(facts_of(index), experiment.config);
  }
  const task::Preprocessing learned = from_more(index, [&](const ordered_json& more) {
    experiment.about = more.at("about").get<std::string>();
    experiment.card = io::json_text(more.at("card"), 1);
    const std::string origin = data::partition_index_path(folder).string();
    return pins_from_json(more.at("pins").get<std::string>(), origin).learned;
  });
  train::check(experiment.config);
  check_partition(experiment.config, index, ranks.size());
  const ranks::Shares shares{index.num_pieces(), ranks.size()};
  data::PartitionNodes mine =
      data::read_partition(folder, index, shares.begin(ranks.rank()), shares.end(ranks.rank()));
  mine.nodes.columns = learned.columns;
  experiment.dataset = dataset_of(index, folder, std::move(mine.nodes));
  if (pins != nullptr) {
    const std::string change = what_changed(pins->files, experiment.dataset->files);
    if (!change.empty()) {
      throw base::Error(folder.string(), change +
                                             " since this run was trained; put the old parts "
                                             "back, or start anew with another --out");
    }
  }
  experiment.metric = metric_of(experiment.config, *experiment.dataset);

  nn::NodeRows::Given given{.ranks = ranks, .all_bounds = {}, .number = mine.number, .rows = {}};
  for (std::int64_t p = 0; p <= index.num_pieces(); ++p) given.all_bounds.push_back(index.first(p));
  const auto take = [](data::PartitionRows<float>& rows) {
    return nn::OwnRows{std::move(rows.row_ptr), std::move(rows.col), std::move(rows.value)};
  };
  given.hops = experiment.config.model.hops;
  given.rows = take(mine.rows);
  if (!index.is_symmetric) given.transposed = take(mine.transposed);
  const auto rows = std::make_shared<const nn::NodeRows>(std::move(given));
  const kernels::CsrView<float>& a = rows->a().a;
  experiment.share = std::make_shared<const task::NodeShare>(task::NodeShare{
      .ranks = &ranks,
      .number = std::move(mine.number),
      .bounds = rows->bounds(),
      .num_parts = index.num_pieces(),
      .num_nodes = index.num_nodes(),
      .gso = graph::Gso::borrow(
          {.row_ptr = {a.row_ptr, static_cast<std::size_t>(rows->own() + 1)},
           .col = {a.col, static_cast<std::size_t>(a.row_ptr[rows->own()])},
           .value_float = {a.value, static_cast<std::size_t>(a.row_ptr[rows->own()])}})});
  experiment.problem =
      task::make_problem(*experiment.dataset, train::problem_options(experiment.config), nullptr,
                         experiment.share.get());
  // Who is in which part of the split is in the parts of the graph, which are pinned by the index.
  experiment.pins = {.files = experiment.dataset->files,
                     .learned = experiment.problem->preprocessing(),
                     .protocol = index.protocol};
  experiment.model = train::build_model(*experiment.problem, experiment.config);
  // Two states with their halo, forward and backward; by rings C of the halo, too, and a copy on
  // its way.
  const std::int64_t with_halo = rows->own() + std::max(rows->a().halo, rows->transposed().halo);
  experiment.model.training_bytes += 4 *
                                     ((rows->by_rings() ? 4 : 2) * with_halo + rows->rows_sent()) *
                                     experiment.config.model.channels;
  experiment.model.least_training_bytes = experiment.model.training_bytes;
  const auto model = std::dynamic_pointer_cast<nn::ModelImpl>(experiment.model.module);
  const std::string reason =
      model == nullptr
          ? fmt::format("{} has no halo", train::to_string(experiment.config.model.kind))
          : nn::why_not_by_nodes(model->options());
  if (!reason.empty()) {
    throw base::Error({.where = folder.string(),
                       .what = "a graph in parts cannot be trained on like this: " + reason,
                       .hint = "model.kind=mpssm without batch norm can be"});
  }
  experiment.by_nodes = std::make_shared<nn::NodeRanks>(model, rows);
  experiment.dataset->notes.push_back(fmt::format(
      "{} rank(s) have {} part(s) of the graph; {} rank 0 sends rows of {} nodes and "
      "reads {}{}",
      ranks.size(), index.num_pieces(),
      rows->by_rings() ? fmt::format("once for the {} hops of a block", given.hops) : "at a hop",
      rows->rows_sent(), rows->a().halo,
      rows->by_rings() ? ", which is less than at every hop" : ""));
  return experiment;
}

}  // namespace mpssm::run
