// SPDX-License-Identifier: MIT
#include "mpssm/engine/node_encodings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <memory>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/graph/distances.h"
#include "mpssm/graph/laplacian_modes.h"

namespace mpssm::engine {
namespace {

constexpr std::int64_t kMostWalks = 256;
constexpr std::int64_t kMostModes = 64;
constexpr std::int64_t kTogether = 8;  // starts that walk side by side, in one line of cache

/// The chain along the edges: entries (to, P[from][to]) of each `from`, or (from, P[from][to]) of
/// each `to`.
struct Chain {
  std::vector<std::int64_t> row_ptr;
  std::vector<std::int32_t> col;
  std::vector<double> value;
};

struct Walks {
  Chain forward;
  Chain backward;           // empty if the graph is symmetric: see Returns::keep_back()
  std::vector<double> out;  // sum of |weight| that leaves a node
};

std::vector<double> leaving(const graph::Graph& graph) {
  std::vector<double> out(static_cast<std::size_t>(graph.num_nodes()), 0.0);
  for (std::int64_t e = 0; e < graph.num_entries(); ++e) {
    out[graph.col()[e]] += std::abs(graph.weight()[e]);
  }
  return out;
}

Walks walks_on(const graph::Graph& graph) {
  Walks walks{.forward = {}, .backward = {}, .out = leaving(graph)};
  const std::int64_t n = graph.num_nodes();
  const auto share = [&](std::int64_t e) {
    const double out = walks.out[graph.col()[e]];
    return out > 0.0 ? std::abs(graph.weight()[e]) / out : 0.0;
  };
  // Row i of the graph lists the nodes that send to i.
  Chain in{.row_ptr = {graph.row_ptr().begin(), graph.row_ptr().end()},
           .col = {graph.col().begin(), graph.col().end()},
           .value = {}};
  for (std::int64_t e = 0; e < graph.num_entries(); ++e) in.value.push_back(share(e));
  Chain& forward = walks.forward;
  forward.row_ptr.assign(static_cast<std::size_t>(n) + 1, 0);
  forward.col.resize(in.col.size());
  forward.value.resize(in.col.size());
  for (const std::int32_t from : in.col) ++forward.row_ptr[from + 1];
  for (std::int64_t i = 0; i < n; ++i) forward.row_ptr[i + 1] += forward.row_ptr[i];
  std::vector<std::int64_t> next(forward.row_ptr.begin(), forward.row_ptr.end() - 1);
  for (std::int64_t to = 0; to < n; ++to) {
    for (std::int64_t e = in.row_ptr[to]; e < in.row_ptr[to + 1]; ++e) {
      const std::int64_t slot = next[in.col[e]]++;
      forward.col[slot] = static_cast<std::int32_t>(to);
      forward.value[slot] = in.value[e];
    }
  }
  if (!graph.is_symmetric()) walks.backward = std::move(in);
  return walks;
}

/// Some starts at once and the nodes that they have reached, numbered as they are found.
class Spread {
 public:
  explicit Spread(std::int64_t num_nodes) : place_(static_cast<std::size_t>(num_nodes), -1) {}

  void start(std::int64_t first, std::int64_t count) {
    for (const std::int32_t node : nodes_) place_[node] = -1;
    nodes_.clear();
    now_.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      place_of(static_cast<std::int32_t>(first + i), now_);
      now_[i * kTogether + i] = 1.0;
    }
  }

  /// One step along the entries of `chain`.
  void step(const Chain& chain) {
    next_.assign(now_.size(), 0.0);
    const auto reached = std::ssize(nodes_);
    for (std::int64_t u = 0; u < reached; ++u) {
      const std::int32_t node = nodes_[u];
      for (std::int64_t e = chain.row_ptr[node]; e < chain.row_ptr[node + 1]; ++e) {
        const std::int64_t to = place_of(chain.col[e], next_) * kTogether;
        const double* from = now_.data() + u * kTogether;
        for (std::int64_t c = 0; c < kTogether; ++c) next_[to + c] += chain.value[e] * from[c];
      }
    }
    now_.swap(next_);
  }

  std::int64_t size() const { return std::ssize(nodes_); }
  std::int32_t node(std::int64_t u) const { return nodes_[u]; }
  const double* row(std::int64_t u) const { return now_.data() + u * kTogether; }
  /// The row of a node; nullptr: not reached.
  const double* row_of(std::int32_t node) const {
    return place_[node] < 0 ? nullptr : row(place_[node]);
  }

 private:
  std::int64_t place_of(std::int32_t node, std::vector<double>& rows) {
    if (place_[node] < 0) {
      place_[node] = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back(node);
      rows.resize(nodes_.size() * kTogether, 0.0);
    }
    return place_[node];
  }

  std::vector<std::int32_t> place_;  // of each node; -1: not reached
  std::vector<std::int32_t> nodes_;
  std::vector<double> now_;
  std::vector<double> next_;
};

using Sums = std::array<double, kTogether>;

/// How likely walks are back, from the two halves of their ways: sum_j P^a[s][j] P^b[j][s].
class Returns {
 public:
  explicit Returns(const Walks& walks)
      : walks_(walks),
        there_(std::ssize(walks.out)),
        back_(walks.backward.row_ptr.empty() ? 0 : std::ssize(walks.out)) {}

  void start(std::int64_t first, std::int64_t count) {
    first_ = first;
    count_ = count;
    there_.start(first, count);
    if (!is_reversible()) back_.start(first, count);
    keep_back();
  }
  void step_there() { there_.step(walks_.forward); }
  void step_back() {
    if (!is_reversible()) back_.step(walks_.backward);
    keep_back();
  }

  Sums meet() const {
    Sums sums = {};
    for (std::int64_t u = 0; u < there_.size(); ++u) {
      const double* back = row_back(u);
      if (back == nullptr) continue;
      for (std::int64_t c = 0; c < kTogether; ++c) sums[c] += there_.row(u)[c] * back[c];
    }
    return sums;
  }

 private:
  bool is_reversible() const { return walks_.backward.row_ptr.empty(); }

  /// P^b[j][s] of node number u of there_; nullptr: not reached.
  const double* row_back(std::int64_t u) const {
    if (!is_reversible()) return back_.row_of(there_.node(u));
    return u * kTogether < std::ssize(kept_) ? kept_.data() + u * kTogether : nullptr;
  }

  /// On a symmetric graph P^b[j][s] is P^b[s][j] out[s] / out[j].
  void keep_back() {
    if (!is_reversible()) return;
    kept_.assign(static_cast<std::size_t>(there_.size() * kTogether), 0.0);
    for (std::int64_t u = 0; u < there_.size(); ++u) {
      const double out = walks_.out[there_.node(u)];
      if (out == 0.0) continue;
      for (std::int64_t c = 0; c < count_; ++c) {
        kept_[u * kTogether + c] = there_.row(u)[c] * (walks_.out[first_ + c] / out);
      }
    }
  }

  const Walks& walks_;
  Spread there_;
  Spread back_;
  std::vector<double> kept_;  // rows of row_back()
  std::int64_t first_ = 0;
  std::int64_t count_ = 0;
};

void encode_walks(const graph::Graph& graph, std::int64_t steps, std::int64_t width, float* out,
                  const Executor& executor) {
  const Walks walks = walks_on(graph);
  const std::int64_t n = graph.num_nodes();
  constexpr std::int64_t kStarts = 64 * kTogether;  // of a task
  const std::int64_t tasks = (n + kStarts - 1) / kStarts;
  const std::int64_t work = steps * graph.num_entries() * kTogether;
  std::vector<std::unique_ptr<Returns>> of_worker(executor.workers());
  run_tasks(executor, tasks, work, [&](std::int64_t task, std::int64_t worker) {
    if (of_worker[worker] == nullptr) of_worker[worker] = std::make_unique<Returns>(walks);
    Returns& returns = *of_worker[worker];
    const std::int64_t end = std::min(n, (task + 1) * kStarts);
    for (std::int64_t first = task * kStarts; first < end; first += kTogether) {
      const std::int64_t count = std::min(kTogether, end - first);
      returns.start(first, count);
      for (std::int64_t k = 1; k <= steps; ++k) {
        if (k % 2 == 1) {
          returns.step_there();
        } else {
          returns.step_back();
        }
        const Sums sums = returns.meet();
        for (std::int64_t c = 0; c < count; ++c) {
          out[(first + c) * width + k - 1] = static_cast<float>(sums[c]);
        }
      }
    }
  });
}

void encode_modes(const graph::Graph& graph, std::int64_t count, std::int64_t width, float* out,
                  const Executor& executor) {
  const auto parts = graph::nodes_of_parts(graph::components(graph));
  const std::int64_t work = 1000 * graph.num_entries() * count;
  run_tasks(executor, std::ssize(parts), work, [&](std::int64_t p) {
    const std::vector<std::int32_t>& nodes = parts[p];
    const graph::LaplacianModes modes = graph::laplacian_modes(graph, nodes, count);
    const double scale = std::sqrt(static_cast<double>(nodes.size()));
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (std::int64_t k = 0; k < count; ++k) {
        out[nodes[i] * width + k] = static_cast<float>(scale * modes.vectors[i * count + k]);
      }
    }
  });
}

void encode_degree(const graph::Graph& graph, std::int64_t width, float* out) {
  std::vector<double> sum = leaving(graph);
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      sum[i] += std::abs(graph.weight()[e]);
    }
    out[i * width] = static_cast<float>(std::log1p(0.5 * sum[i]));
  }
}

std::int64_t size_in(std::string_view word, std::string_view size, std::int64_t usual,
                     std::int64_t most) {
  if (size.empty()) return usual;
  std::int64_t value = 0;
  const char* end = size.data() + size.size();
  const auto [stop, problem] = std::from_chars(size.data() + 1, end, value);
  if (problem == std::errc() && stop == end && value >= 1 && value <= most) return value;
  throw base::Error(fmt::format("expected {}:1 to {}:{}, got '{}{}'", word, word, most, word,
                                base::printable(size)));
}

}  // namespace

EncodingOptions encodings_from_text(std::string_view text) {
  EncodingOptions options;
  if (text.empty()) return options;
  std::string_view rest = text;
  for (bool is_last = false; !is_last;) {
    const std::size_t comma = rest.find(',');
    is_last = comma == std::string_view::npos;
    std::string_view item = rest.substr(0, comma);
    rest = is_last ? std::string_view() : rest.substr(comma + 1);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    const std::string_view word = item.substr(0, item.find(':'));
    const std::string_view size = item.substr(word.size());
    const EncodingOptions before = options;
    if (word == "rwse") {
      options.random_walk = size_in(word, size, 16, kMostWalks);
    } else if (word == "lap") {
      options.laplacian = size_in(word, size, 8, kMostModes);
    } else if (item == "degree") {
      options.degree = true;
    } else if (item == "edges") {
      options.edges = true;
    } else {
      throw base::Error(
          {.expected = "some of rwse:K, lap:K, degree, edges with commas between them",
           .got = fmt::format("'{}'", base::printable(item))});
    }
    const bool is_second = (word == "rwse" && before.random_walk > 0) ||
                           (word == "lap" && before.laplacian > 0) ||
                           (word == "degree" && before.degree) || (word == "edges" && before.edges);
    if (is_second) throw base::Error(fmt::format("expected {} once, got it twice", word));
  }
  return options;
}

std::string to_text(const EncodingOptions& options) {
  std::string text;
  const auto add = [&](const std::string& item) { text += (text.empty() ? "" : ",") + item; };
  if (options.random_walk > 0) add(fmt::format("rwse:{}", options.random_walk));
  if (options.laplacian > 0) add(fmt::format("lap:{}", options.laplacian));
  if (options.degree) add("degree");
  if (options.edges) add("edges");
  return text;
}

std::vector<float> encode_nodes(const graph::Graph& graph, const EncodingOptions& options,
                                const Executor& executor) {
  const std::int64_t width = options.width();
  std::vector<float> values(static_cast<std::size_t>(graph.num_nodes() * width), 0.0F);
  float* column = values.data();
  if (options.random_walk > 0) {
    encode_walks(graph, options.random_walk, width, column, executor);
    column += options.random_walk;
  }
  if (options.laplacian > 0) {
    encode_modes(graph, options.laplacian, width, column, executor);
    column += options.laplacian;
  }
  if (options.degree) encode_degree(graph, width, column);
  return values;
}

}  // namespace mpssm::engine
