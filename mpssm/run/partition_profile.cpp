// SPDX-License-Identifier: MIT
#include "mpssm/run/partition_profile.h"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "mpssm/analysis/part_walk.h"
#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/partition.h"
#include "mpssm/io/csv.h"
#include "mpssm/ranks/collectives.h"
#include "mpssm/ranks/halo.h"
#include "mpssm/run/partition.h"

namespace mpssm::run {
namespace {

/// The parts that this rank reads, and the rows of others that it walks on.
class OwnOperator {
 public:
  OwnOperator(const std::filesystem::path& folder, const data::PartitionIndex& index,
              ranks::Communicator& ranks)
      : ranks_(ranks) {
    const ranks::Shares shares{index.num_pieces(), ranks.size()};
    for (std::int64_t p = 0; p <= ranks.size(); ++p) {
      rank_bounds_.push_back(index.first(shares.begin(p)));
    }
    mine_ = data::read_partition_operator(folder, index, shares.begin(ranks.rank()),
                                          shares.end(ranks.rank()));
    halos_.reserve(2);  // fill() refers to them
    parts_.bounds = mine_.bounds;
    parts_.rows = local(mine_.rows);
    parts_.transposed = index.is_symmetric ? parts_.rows : local(mine_.transposed);
  }
  OwnOperator(const OwnOperator&) = delete;
  OwnOperator& operator=(const OwnOperator&) = delete;

  const analysis::OwnParts& parts() const { return parts_; }

  /// The own node of that id, or of that number if nodes have no ids; -1: it is not here.
  std::int64_t find(const std::string& id) const {
    const auto place_in = [](const auto& all, const auto& wanted) -> std::int64_t {
      const auto found = std::find(all.begin(), all.end(), wanted);
      return found == all.end() ? -1 : found - all.begin();
    };
    if (!mine_.node_ids.empty()) return place_in(mine_.node_ids, id);
    return place_in(mine_.number, io::to_integer(id).value_or(-1));
  }

 private:
  engine::HaloRows<double> local(data::PartitionRows<double>& rows) {
    const std::int64_t first = rank_bounds_[ranks_.rank()];
    const std::int64_t own = rank_bounds_[ranks_.rank() + 1] - first;
    halos_.emplace_back(ranks_, rank_bounds_, ranks::localise(first, first + own, rows.col));
    const ranks::Halo& halo = halos_.back();
    return {.a = {.num_rows = own,
                  .row_ptr = rows.row_ptr.data(),
                  .col = rows.col.data(),
                  .value = rows.value.data()},
            .halo = halo.size(),
            .fill = [&halo, own](double* x, std::int64_t width) {
              halo.fill(x, width * static_cast<std::int64_t>(sizeof(double)), x + own * width);
            }};
  }

  ranks::Communicator& ranks_;
  std::vector<std::int64_t> rank_bounds_;
  data::PartitionOperator mine_;
  std::vector<ranks::Halo> halos_;
  analysis::OwnParts parts_;
};

/// Sums over ranks of numbers that are zero on all but one.
std::vector<double> from_whoever_has_it(ranks::Communicator& ranks, std::vector<double> mine) {
  return ranks::sum_few_in_order(ranks, mine, ranks.size(), std::ssize(mine));
}

/// As OwnOperator::find(); throws if no rank has it.
std::int64_t find_node(const OwnOperator& own, const data::PartitionIndex& index,
                       ranks::Communicator& ranks, const std::string& id) {
  if (id.empty()) return -1;
  const std::int64_t node = own.find(id);
  if (ranks::any(ranks, node >= 0)) return node;
  throw base::Error(fmt::format(
      "{}: expected a node {}, got '{}'", base::printable(index.dataset, 200),
      index.has_node_ids ? "by its id" : fmt::format("from 0 to {}", index.num_nodes() - 1),
      base::printable(id)));
}

analysis::Progress share_of(std::int64_t last, const analysis::BlockProgress& progress) {
  if (!progress) return {};
  return [=](std::int64_t tau) { progress(static_cast<double>(tau) / static_cast<double>(last)); };
}

/// Reach at each tau over the parts of all ranks, in their order; on rank 0.
std::vector<analysis::Reach> gathered(ranks::Communicator& ranks,
                                      const std::vector<analysis::Reach>& mine,
                                      std::size_t num_taus) {
  constexpr std::size_t kBytes = sizeof(analysis::Reach);
  const std::string sent(reinterpret_cast<const char*>(mine.data()), mine.size() * kBytes);
  std::vector<analysis::Reach> all(num_taus);
  for (const std::string& text : ranks::to_first(ranks, sent)) {
    for (std::size_t i = 0; i < text.size() / kBytes; ++i) {
      analysis::Reach part;
      std::memcpy(&part, text.data() + i * kBytes, kBytes);
      analysis::add_part(all[i % num_taus], part);
    }
  }
  return all;
}

analysis::GraphAnswer describe(const PartitionQuestion& question,
                               const data::PartitionIndex& index) {
  analysis::GraphAnswer answer{.taus = question.taus,
                               .w = question.w,
                               .gso = std::string(graph::to_string(index.gso)),
                               .nodes = index.num_nodes()};
  const PartitionedGraph whole = partitioned_graph(index);
  answer.edges = whole.edges;
  answer.is_symmetric = whole.is_symmetric;
  answer.components = whole.components;
  return answer;
}

/// Names go in place of the graph: nobody has it whole.
void name_nodes(const PartitionQuestion& question, const data::PartitionIndex& index,
                PartitionAnswer& result) {
  result.graph.name = index.dataset;
  const auto add = [&](const std::string& id, std::int64_t& node) {
    if (id.empty()) return;
    node = index.has_node_ids ? std::ssize(result.graph.node_ids) : *io::to_integer(id);
    if (index.has_node_ids) result.graph.node_ids.push_back(id);
  };
  add(question.source, result.answer.source);
  add(question.target, result.answer.target);
}

void check(const PartitionQuestion& question, const data::PartitionIndex& index,
           const ranks::Communicator& ranks) {
  check_num_ranks(index, ranks.size());
  if (question.source.empty() && question.target.empty()) {
    throw base::Error({.where = "sensitivity",
                       .expected = "--source or --target of a graph in parts",
                       .got = "neither",
                       .hint = "all pairs are looked at on the whole graph, " + index.source});
  }
  const std::string_view cut_with = graph::to_string(index.gso);
  if (!question.gso.empty() && question.gso != cut_with) {
    throw base::Error({.where = "--gso",
                       .expected = fmt::format("{}, which the graph was cut with", cut_with),
                       .got = question.gso});
  }
}

}  // namespace

PartitionAnswer answer(const PartitionQuestion& question, ranks::Communicator& ranks,
                       const engine::Executor& executor, const analysis::Stages& stages) {
  const data::PartitionIndex index = data::read_partition_index(question.folder);
  check(question, index, ranks);
  const OwnOperator own(question.folder, index, ranks);
  const std::int64_t source = find_node(own, index, ranks, question.source);
  const std::int64_t target = find_node(own, index, ranks, question.target);
  PartitionAnswer result{.answer = describe(question, index)};
  name_nodes(question, index, result);
  const bool is_pair = !question.source.empty() && !question.target.empty();
  const auto progress =
      share_of(question.taus.back(),
               stages ? stages(is_pair ? "S(tau)" : "profile") : analysis::BlockProgress());
  const auto scaled = [&](double entry, std::int64_t tau) {
    return analysis::scaled(entry, question.w, tau);
  };
  if (!is_pair) {
    const bool sends = !question.source.empty();
    std::vector<analysis::Reach> profile =
        gathered(ranks,
                 analysis::own_reach_profiles(
                     own.parts(), sends ? source : target,
                     sends ? analysis::View::kFromSource : analysis::View::kToTarget, question.taus,
                     executor, progress),
                 question.taus.size());
    for (analysis::Reach& reach : profile) {
      for (double* size : {&reach.largest, &reach.smallest, &reach.total}) {
        *size = scaled(*size, reach.tau);
      }
    }
    result.answer.node = {.profile = std::move(profile)};
    return result;
  }
  const auto hops = analysis::own_hops_from(own.parts(), source,
                                            [&](bool here) { return ranks::any(ranks, here); });
  std::vector<double> mine =
      analysis::own_pair_profile(own.parts(), source, target, question.taus, executor, progress);
  mine.push_back(target >= 0 ? hops[target] : 0.0);
  analysis::PairAnswer pair{.entry = from_whoever_has_it(ranks, std::move(mine))};
  pair.hops = static_cast<std::int32_t>(pair.entry.back());
  pair.entry.pop_back();
  for (std::size_t t = 0; t < pair.entry.size(); ++t) {
    pair.entry[t] = std::abs(pair.entry[t]);
    pair.value.push_back(scaled(pair.entry[t], question.taus[t]));
  }
  result.answer.pair = std::move(pair);
  return result;
}

}  // namespace mpssm::run
