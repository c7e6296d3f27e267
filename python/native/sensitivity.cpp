// SPDX-License-Identifier: MIT
// Questions about an operator for Python: asked whole, the answer read column by column.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "mpssm/analysis/graph_question.h"
#include "mpssm/analysis/walk.h"

#include "python/native/error.h"
#include "python/native/gso.h"
#include "python/native/threads.h"

namespace mpssm::native {

/// Every field takes eight bytes. No node is -1, no share of the limit is NaN.
struct SensitivityArguments {
  std::int64_t num_taus;
  const std::int64_t* taus;
  std::int64_t source;
  std::int64_t target;
  double w;
  std::int64_t bounds;
  double depth;
  std::int64_t max_tau;
  std::int64_t worst;
  std::int64_t by_share;
  std::int64_t profile;  // of all pairs, if no node is given
};

/// Named columns of numbers; what is not known is NaN, what was not asked for is not there.
class Columns {
 public:
  void add(const std::string& name, std::vector<double> column) {
    columns_.insert_or_assign(name, std::move(column));
  }
  void add(const std::string& name, double number) { add(name, std::vector<double>{number}); }
  template <typename T>
  void add(const std::string& name, const std::optional<T>& number) {
    add(name, number ? static_cast<double>(*number) : std::numeric_limits<double>::quiet_NaN());
  }
  /// One number of each of `rows`.
  template <typename Rows, typename Get>
  void add(const std::string& name, const Rows& rows, const Get& get) {
    std::vector<double> column;
    for (const auto& row : rows) column.push_back(static_cast<double>(get(row)));
    add(name, std::move(column));
  }
  const std::vector<double>* find(const std::string& name) const {
    const auto found = columns_.find(name);
    return found == columns_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, std::vector<double>> columns_;
};

namespace {

using analysis::GraphAnswer;
using analysis::GraphQuestion;

void require_limit(const GraphQuestion& question) {
  if (question.limit == nullptr) {
    throw std::invalid_argument("sensitivity: there is no limit: " + question.why_no_limit);
  }
}

GraphQuestion question_of(const GsoArguments& gso, const SensitivityArguments& arguments) {
  GraphQuestion question(gso.borrow(), {arguments.taus, arguments.taus + arguments.num_taus});
  question.source = arguments.source;
  question.target = arguments.target;
  question.extremes = arguments.profile != 0;
  question.wishes.w = arguments.w;
  question.wishes.bounds = arguments.bounds != 0;
  if (!std::isnan(arguments.depth)) question.wishes.depth = arguments.depth;
  question.wishes.max_tau = arguments.max_tau;
  question.wishes.worst = arguments.worst;
  if (arguments.by_share != 0) question.wishes.order = analysis::Order::kShare;
  if (question.wishes.depth || arguments.by_share != 0) require_limit(question);
  if (question.wishes.bounds && question.is_pair()) require_limit(question);
  return question;
}

void add_pair(const analysis::PairAnswer& pair, Columns& columns) {
  columns.add("value", pair.value);
  columns.add("hops", static_cast<double>(pair.hops));
  columns.add("limit", pair.limit);
  if (!pair.limit_value.empty()) columns.add("limit_value", pair.limit_value);
  if (pair.bounds) {
    columns.add("lower", pair.bounds->lower);
    columns.add("upper", pair.bounds->upper);
    columns.add("hold", pair.bounds->hold ? 1.0 : 0.0);
  }
  if (pair.depth) {
    columns.add("depth", pair.depth->first);
    columns.add("sure_from", pair.depth->sure_from);
  }
}

void add_node(const analysis::NodeAnswer& node, Columns& columns) {
  using analysis::Reach;
  columns.add("nodes", node.profile, [](const Reach& at) { return at.nodes; });
  columns.add("largest", node.profile, [](const Reach& at) { return at.largest; });
  columns.add("smallest", node.profile, [](const Reach& at) { return at.smallest; });
  columns.add("total", node.profile, [](const Reach& at) { return at.total; });
}

void add_all_pairs(const analysis::AllPairsAnswer& all, Columns& columns) {
  using analysis::Extremes;
  columns.add("least", all.profile, [](const Extremes& at) { return at.least.value; });
  columns.add("least_source", all.profile, [](const Extremes& at) { return at.least.source; });
  columns.add("least_target", all.profile, [](const Extremes& at) { return at.least.target; });
  columns.add("largest", all.profile, [](const Extremes& at) { return at.largest.value; });
  columns.add("largest_source", all.profile, [](const Extremes& at) { return at.largest.source; });
  columns.add("largest_target", all.profile, [](const Extremes& at) { return at.largest.target; });
  columns.add("zeros", all.profile, [](const Extremes& at) { return at.zeros; });
  if (all.bounds) {
    if (!all.bounds->least.empty()) columns.add("least_bound", all.bounds->least);
    columns.add("largest_bound", all.bounds->largest);
    columns.add("hold", all.bounds->hold ? 1.0 : 0.0);
  }
  if (all.depth) {
    const auto& found = all.depth->found;
    columns.add("depth", found ? std::optional(found->tau) : std::nullopt);
    columns.add("last_source", found ? std::optional(found->last.source) : std::nullopt);
    columns.add("last_target", found ? std::optional(found->last.target) : std::nullopt);
  }
}

void add_worst(const analysis::WorstPairs& worst, Columns& columns) {
  using analysis::WorstPair;
  columns.add("source", worst.pairs, [](const WorstPair& pair) { return pair.source; });
  columns.add("target", worst.pairs, [](const WorstPair& pair) { return pair.target; });
  columns.add("hops", worst.pairs, [](const WorstPair& pair) { return pair.hops; });
  columns.add("value", worst.pairs, [](const WorstPair& pair) { return pair.value; });
  if (worst.knows_limit) {
    columns.add("limit", worst.pairs, [](const WorstPair& pair) { return pair.limit; });
    columns.add("share", worst.pairs, [](const WorstPair& pair) { return pair.share; });
  }
  if (worst.knows_bridges) {
    columns.add("bridges", worst.pairs, [](const WorstPair& pair) { return pair.bridges.size(); });
  }
}

Columns columns_of(const GraphAnswer& answer) {
  Columns columns;
  columns.add("lambda_star", answer.lambda_star);
  columns.add("is_certain", answer.is_certain ? 1.0 : 0.0);
  columns.add("least_limit", answer.least_limit);
  if (answer.pair) add_pair(*answer.pair, columns);
  if (answer.node) add_node(*answer.node, columns);
  if (answer.all_pairs) add_all_pairs(*answer.all_pairs, columns);
  if (answer.worst) add_worst(*answer.worst, columns);
  return columns;
}

}  // namespace
}  // namespace mpssm::native

using namespace mpssm;

/// Free the result with mpssm_sensitivity_free().
MPSSM_C_API std::int64_t mpssm_sensitivity_ask(const native::GsoArguments* gso,
                                               const native::SensitivityArguments* arguments,
                                               native::Columns** result) {
  return native::guarded([&] {
    const analysis::GraphQuestion question = native::question_of(*gso, *arguments);
    const native::HostThreads threads;
    *result =
        std::make_unique<native::Columns>(native::columns_of(analysis::answer(question, threads)))
            .release();
  });
}

/// A column, valid as long as the answer is; null if it has none of that name.
MPSSM_C_API const double* mpssm_sensitivity_column(const native::Columns* answer, const char* name,
                                                   std::int64_t* size) {
  const std::vector<double>* column = answer->find(name);
  *size = column == nullptr ? 0 : std::ssize(*column);
  return column == nullptr ? nullptr : column->data();
}

MPSSM_C_API void mpssm_sensitivity_free(native::Columns* answer) { delete answer; }

/// limit [count] of (A^tau)_ij as tau grows, for each pair of source and target.
MPSSM_C_API std::int64_t mpssm_sensitivity_limits(const native::GsoArguments* gso,
                                                  std::int64_t count, const std::int64_t* source,
                                                  const std::int64_t* target, double* limit) {
  return native::guarded([&] {
    const analysis::GraphQuestion question(gso->borrow(), {0});
    native::require_limit(question);
    for (std::int64_t k = 0; k < count; ++k) {
      limit[k] = question.limit->limit(target[k], source[k]);
    }
  });
}

/// hops [N] that messages need from each node to `target`, -1 where there is no way.
MPSSM_C_API std::int64_t mpssm_sensitivity_hops(const native::GsoArguments* gso,
                                                std::int64_t target, std::int32_t* hops) {
  return native::guarded(
      [&] { std::ranges::copy(analysis::hops_to(gso->borrow(), target), hops); });
}
