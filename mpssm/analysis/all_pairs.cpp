// SPDX-License-Identifier: MIT
// A block of columns goes through all steps while it sits in cache; threads take blocks in turns.
#include "mpssm/analysis/all_pairs.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "mpssm/kernels/spmm.h"

namespace mpssm::analysis {
namespace {

constexpr std::int64_t kWidth = 16;

/// Columns [first, first + width) of A^tau, row-major [N, width].
class ColumnBlock {
 public:
  explicit ColumnBlock(const graph::Gso& gso)
      : matrix_(gso.view<double>()),
        values_(static_cast<std::size_t>(matrix_.num_rows * kWidth)),
        next_(values_.size()) {}

  void start(std::int64_t block) {
    first_ = block * kWidth;
    width_ = std::min(kWidth, matrix_.num_rows - first_);
    tau_ = 0;
    std::fill(values_.begin(), values_.end(), 0.0);
    for (std::int64_t c = 0; c < width_; ++c) values_[(first_ + c) * width_ + c] = 1.0;
  }
  void step() {
    kernels::SpmmArgs<double> args;
    args.a = matrix_;
    args.x = values_.data();
    args.y = next_.data();
    args.x_stride = args.y_stride = args.width = width_;
    kernels::spmm(args, 0, matrix_.num_rows);
    std::swap(values_, next_);
    ++tau_;
  }
  void walk_to(std::int64_t tau) {
    while (tau_ < tau) step();
  }

  std::int64_t num_rows() const { return matrix_.num_rows; }
  std::int64_t first() const { return first_; }
  std::int64_t width() const { return width_; }
  std::int64_t tau() const { return tau_; }
  const double* row(std::int64_t i) const { return values_.data() + i * width_; }

 private:
  kernels::CsrView<double> matrix_;
  std::vector<double> values_;
  std::vector<double> next_;
  std::int64_t first_ = 0;
  std::int64_t width_ = 0;
  std::int64_t tau_ = 0;
};

void check_size(const graph::Gso& gso) {
  if (gso.num_nodes() <= kMaxAllPairs) return;
  throw std::invalid_argument(
      fmt::format("all pairs: expected at most {} nodes, got {}; ask for one source or one target",
                  kMaxAllPairs, gso.num_nodes()));
}

/// Runs work(block) for every block of columns; merge(block) under a lock when it is done.
template <typename Work, typename Merge>
void for_each_block(const graph::Gso& gso, const engine::Executor& executor,
                    const BlockProgress& progress, const Work& work, const Merge& merge) {
  check_size(gso);
  const std::int64_t count = (gso.num_nodes() + kWidth - 1) / kWidth;
  std::atomic<std::int64_t> next{0};
  std::mutex lock;
  std::int64_t done = 0;
  const auto worker = [&](std::int64_t) {
    ColumnBlock block(gso);
    for (std::int64_t b = next++; b < count; b = next++) {
      block.start(b);
      auto result = work(block);
      const std::lock_guard<std::mutex> guard(lock);
      merge(std::move(result));
      ++done;
      if (progress) progress(static_cast<double>(done) / static_cast<double>(count));
    }
  };
  executor.run(worker);
}

/// Of what each node keeps of itself in the limit: q_ij is the product of two of them.
std::vector<double> roots(const DeepLimit& limit, std::int64_t num_nodes) {
  std::vector<double> root(static_cast<std::size_t>(num_nodes));
  for (std::int64_t i = 0; i < num_nodes; ++i) root[i] = std::sqrt(limit.limit(i, i));
  return root;
}

/// Ties go to the lower numbers, so that threads do not matter.
auto key(const PairValue& pair) { return std::tuple(pair.value, pair.source, pair.target); }
bool is_less(const PairValue& a, const PairValue& b) { return key(a) < key(b); }
bool is_more(const PairValue& a, const PairValue& b) {
  return std::tuple(-a.value, a.source, a.target) < std::tuple(-b.value, b.source, b.target);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Extremes no_extremes(std::int64_t tau) {
  return {.tau = tau, .least = {.value = kInfinity}, .largest = {.value = -kInfinity}};
}

void merge_into(Extremes& all, const Extremes& part) {
  if (is_less(part.least, all.least)) all.least = part.least;
  if (is_more(part.largest, all.largest)) all.largest = part.largest;
  all.zeros += part.zeros;
}

std::vector<std::int32_t> component_of_each(const graph::Gso& gso) {
  graph::EdgeList edges{.num_nodes = gso.num_nodes()};
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      if (gso.values<double>()[e] == 0.0) continue;
      edges.src.push_back(gso.col()[e]);
      edges.dst.push_back(i);
    }
  }
  return graph::components(graph::Graph::from_edges(edges, graph::Direction::kDirected)).of_node;
}

Extremes extremes_of(const ColumnBlock& block, const std::vector<std::int32_t>& component) {
  Extremes found = no_extremes(block.tau());
  for (std::int64_t i = 0; i < block.num_rows(); ++i) {
    for (std::int64_t c = 0; c < block.width(); ++c) {
      const PairValue pair{block.first() + c, i, std::abs(block.row(i)[c])};
      if (pair.value >= found.largest.value && is_more(pair, found.largest)) found.largest = pair;
      if (pair.value > found.least.value || component[pair.source] != component[i]) continue;
      if (is_less(pair, found.least)) found.least = pair;
      if (pair.value == 0.0) ++found.zeros;
    }
  }
  return found;
}

/// The pairs of least rank among those offered.
class WorstList {
 public:
  explicit WorstList(std::int64_t count) : count_(static_cast<std::size_t>(count)) {}

  /// `pair.value` is the rank here.
  void offer(const PairValue& pair, double value) {
    if (heap_.size() == count_ && (count_ == 0 || !is_less(pair, heap_.front().first))) return;
    heap_.emplace_back(pair, value);
    std::push_heap(heap_.begin(), heap_.end(), by_rank);
    if (heap_.size() <= count_) return;
    std::pop_heap(heap_.begin(), heap_.end(), by_rank);
    heap_.pop_back();
  }
  void offer(const WorstList& others) {
    for (const auto& [pair, value] : others.heap_) offer(pair, value);
  }
  std::vector<PairValue> sorted() {
    std::sort_heap(heap_.begin(), heap_.end(), by_rank);
    std::vector<PairValue> pairs;
    for (const auto& [pair, value] : heap_) pairs.push_back({pair.source, pair.target, value});
    return pairs;
  }

 private:
  using Entry = std::pair<PairValue, double>;
  static bool by_rank(const Entry& a, const Entry& b) { return is_less(a.first, b.first); }
  std::size_t count_;
  std::vector<Entry> heap_;  // worst-ranked of the kept ones at the front
};

}  // namespace

std::vector<Extremes> extremes(const graph::Gso& gso, std::span<const std::int64_t> taus,
                               const engine::Executor& executor, const BlockProgress& progress) {
  if (!std::is_sorted(taus.begin(), taus.end())) {
    throw std::invalid_argument("extremes: expected ascending taus");
  }
  const std::vector<std::int32_t> component = component_of_each(gso);
  std::vector<Extremes> all;
  for (const std::int64_t tau : taus) all.push_back(no_extremes(tau));
  for_each_block(
      gso, executor, progress,
      [&](ColumnBlock& block) {
        std::vector<Extremes> found;
        for (const std::int64_t tau : taus) {
          block.walk_to(tau);
          found.push_back(extremes_of(block, component));
        }
        return found;
      },
      [&](const std::vector<Extremes>& found) {
        for (std::size_t t = 0; t < all.size(); ++t) merge_into(all[t], found[t]);
      });
  return all;
}

std::vector<PairValue> worst_pairs(const graph::Gso& gso, std::int64_t tau, std::int64_t count,
                                   Order order, const DeepLimit* limit,
                                   const engine::Executor& executor,
                                   const BlockProgress& progress) {
  if (order == Order::kShare && limit == nullptr) {
    throw std::invalid_argument("worst_pairs: a share needs the limit");
  }
  const std::vector<std::int32_t> component = component_of_each(gso);
  const bool each_once = gso.is_symmetric();
  WorstList worst(count);
  for_each_block(
      gso, executor, progress,
      [&](ColumnBlock& block) {
        block.walk_to(tau);
        WorstList found(count);
        for (std::int64_t i = 0; i < block.num_rows(); ++i) {
          for (std::int64_t c = 0; c < block.width(); ++c) {
            const std::int64_t j = block.first() + c;
            if (i == j || component[i] != component[j] || (each_once && i < j)) continue;
            const double value = std::abs(block.row(i)[c]);
            const double rank = order == Order::kShare ? value / limit->limit(i, j) : value;
            found.offer({j, i, rank}, value);
          }
        }
        return found;
      },
      [&](const WorstList& found) { worst.offer(found); });
  return worst.sorted();
}

std::optional<Depth> depth_of_all_pairs(const graph::Gso& gso, const DeepLimit& limit, double share,
                                        std::int64_t max_tau, const engine::Executor& executor,
                                        const BlockProgress& progress) {
  // (S^tau)_ij >= share q_ij, with the root of D_i taken out of q_ij once.
  const std::int64_t n = gso.num_nodes();
  const std::vector<double> root = roots(limit, n);
  const std::vector<std::int32_t>& component = limit.components().of_node;

  // The first target, from `from` on, that a column still holds too little for; n if there is none.
  const auto first_short = [&](const ColumnBlock& block, std::int64_t c, std::int64_t from) {
    const std::int64_t j = block.first() + c;
    const double least = share * root[j];
    for (std::int64_t i = from; i < n; ++i) {
      if (block.row(i)[c] < least * root[i] && component[i] == component[j]) return i;
    }
    return n;
  };
  std::optional<Depth> all = Depth{.tau = -1, .last = {}};
  for_each_block(
      gso, executor, progress,
      [&](ColumnBlock& block) -> std::optional<Depth> {
        Depth depth{.tau = 0, .last = {block.first(), block.first(), block.row(block.first())[0]}};
        for (std::int64_t c = 0; c < block.width(); ++c) {
          // What is enough now may be too little one step later for this one target, so each step
          // looks at all of them, beginning with the one that was short last.
          std::int64_t last = 0;
          for (;;) {
            std::int64_t shortest = first_short(block, c, last);
            if (shortest == n && last > 0) shortest = first_short(block, c, 0);
            if (shortest == n) break;
            last = shortest;
            if (block.tau() == max_tau) return {};
            block.step();
            depth = {block.tau(), {block.first() + c, last, block.row(last)[c]}};
          }
        }
        return depth;
      },
      [&](const std::optional<Depth>& found) {
        if (!all) return;
        if (!found) {
          all = {};
        } else if (found->tau > all->tau ||
                   (found->tau == all->tau && is_less(found->last, all->last))) {
          all = found;
        }
      });
  return all;
}

std::vector<double> reached_shares(const graph::Gso& gso, const DeepLimit& limit, double share,
                                   std::int64_t max_tau, const engine::Executor& executor,
                                   const BlockProgress& progress) {
  const std::int64_t n = gso.num_nodes();
  const std::vector<double> root = roots(limit, n);
  const std::vector<std::int32_t>& component = limit.components().of_node;
  std::vector<std::int64_t> component_size(static_cast<std::size_t>(limit.components().count), 0);
  for (const std::int32_t c : component) ++component_size[c];
  std::int64_t pairs = 0;
  for (const std::int64_t size : component_size) pairs += size * size;

  // Pairs that lack their share, by tau. From the first tau at which a block lacks none on it never
  // lacks one again (see depth_of_all_pairs).
  std::vector<std::int64_t> lacking;
  for_each_block(
      gso, executor, progress,
      [&](ColumnBlock& block) {
        std::vector<std::int64_t> of_block;
        for (;; block.step()) {
          std::int64_t count = 0;
          for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t c = 0; c < block.width(); ++c) {
              const std::int64_t j = block.first() + c;
              const bool is_short = block.row(i)[c] < share * root[j] * root[i];
              count += is_short && component[i] == component[j] ? 1 : 0;
            }
          }
          of_block.push_back(count);
          if (count == 0 || block.tau() == max_tau) return of_block;
        }
      },
      [&](const std::vector<std::int64_t>& of_block) {
        lacking.resize(std::max(lacking.size(), of_block.size()), 0);
        for (std::size_t tau = 0; tau < of_block.size(); ++tau) lacking[tau] += of_block[tau];
      });
  std::vector<double> shares;
  for (const std::int64_t count : lacking) {
    shares.push_back(1.0 - static_cast<double>(count) / static_cast<double>(pairs));
  }
  return shares;
}

std::vector<double> dense_power(const graph::Gso& gso, std::int64_t tau,
                                const engine::Executor& executor) {
  const std::int64_t n = gso.num_nodes();
  if (n > kMaxDensePower) {
    throw std::invalid_argument(
        fmt::format("dense_power: expected at most {} nodes, got {}", kMaxDensePower, n));
  }
  std::vector<double> power(static_cast<std::size_t>(n * n));
  for_each_block(
      gso, executor, {},
      [&](ColumnBlock& block) {
        block.walk_to(tau);
        for (std::int64_t i = 0; i < n; ++i) {
          std::copy_n(block.row(i), block.width(), power.data() + i * n + block.first());
        }
        return 0;
      },
      [](int) {});
  return power;
}

std::int64_t all_pairs_bytes(std::int64_t num_nodes, const engine::Executor& executor) {
  return executor.workers() * 2 * num_nodes * kWidth * static_cast<std::int64_t>(sizeof(double));
}

}  // namespace mpssm::analysis
