// SPDX-License-Identifier: MIT
#include "mpssm/engine/plan_costs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <fmt/core.h>

#include "mpssm/base/error.h"
#include "mpssm/engine/power_chain.h"
#include "mpssm/engine/slicing.h"
#include "mpssm/engine/state_replay.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/graph/spectrum.h"
#include "mpssm/kernels/matmul.h"
#include "mpssm/kernels/recurrence.h"

namespace mpssm::engine {
namespace {

/// Bytes that count as near: about what a core has for itself.
constexpr double kNearBytes = 1 << 20;

/// A query as numbers, and what every plan counts alike.
class WorkCounter {
 public:
  WorkCounter(const graph::Gso& gso, const PlanQuery& query)
      : query_(query),
        batch_(static_cast<double>(query.batch)),
        nodes_(static_cast<double>(gso.num_nodes())),
        entries_(static_cast<double>(gso.num_nonzeros())),
        channels_(static_cast<double>(query.channels)),
        steps_(static_cast<double>(query.num_steps)),
        hops_((steps_ - 1) * static_cast<double>(query.hops_per_step)),
        inputs_(query.temporal ? steps_ : 1.0),
        outputs_(query.outputs == Outputs::kAll ? steps_ : 1.0),
        state_(batch_ * nodes_ * channels_),
        gso_(gso) {}

  PlanWork stepwise() {
    work_[WorkKind::kCall] += passes();
    work_[WorkKind::kTask] += 2.0 * hops_ * passes() * batch_;
    for (int pass = 0; pass < passes(); ++pass)
      whole_rows(hops_ * batch_, entries_, WorkKind::kRowEntry);
    // A hop adds the input and writes; backward, the gradient of the input is a sum.
    numbers(passes() * hops_ * state_);
    if (query_.training || query_.outputs == Outputs::kAll) numbers(state_);
    if (query_.training && query_.hops_per_step > 1) {  // states between inputs are made again
      whole_rows(hops_ * batch_, entries_, WorkKind::kRowEntry);
      numbers(2.0 * hops_ * state_);
    }
    const bool of_entries = query_.training && query_.gso_values;
    if (of_entries) whole_rows(hops_ * batch_, entries_, WorkKind::kRowEntry);
    if (query_.diagonal) {
      numbers(hops_ * state_ * (query_.training ? 4.0 : 1.0));
      if (of_entries) numbers(hops_ * state_);
      return work_;
    }
    const double width = padded(kernels::kPanelColumns);
    const double product = batch_ * nodes_ * width * width;
    if (of_entries) work_[WorkKind::kMultiplyAdd] += hops_ * product;
    work_[WorkKind::kMultiplyAdd] += passes() * hops_ * product;
    work_[WorkKind::kPacked] += passes() * channels_ * channels_;
    if (query_.training) {
      work_[WorkKind::kGramAdd] += hops_ * product;
      numbers(hops_ * (2.0 * state_ + channels_ * channels_));
    }
    return work_;
  }

  PlanWork doubling() {
    const std::int64_t lanes =
        query_.channels <= kernels::kPanelColumns ? kernels::kPanelColumns : slice_lanes();
    const double width = padded(lanes);
    const double slices = batch_ * width / static_cast<double>(lanes);
    const std::vector<Doubling> recipe = recipe_for(query_.num_steps);
    const double moves = static_cast<double>(num_moves(recipe));
    double powers = 0.0;  // products of two matrices that make them
    for (std::size_t j = 0; j + 1 < recipe.size(); ++j) {
      powers += recipe[j].then_increment ? 2.0 : 1.0;
    }
    const double square = width * width;
    const double state = batch_ * nodes_ * width;
    work_[WorkKind::kCall] += passes();
    work_[WorkKind::kTask] += passes() * (hops_ * slices + 3.0 * moves + powers);
    for (int pass = 0; pass < passes(); ++pass) {
      in_slices(hops_ * slices, static_cast<double>(lanes), 1.0);
    }
    work_[WorkKind::kPacked] += passes() * (2.0 * state + (moves + powers) * square);
    work_[WorkKind::kMultiplyAdd] += passes() * (moves * state * width + powers * square * width);
    numbers(moves * state);  // looked at
    if (query_.training) {
      work_[WorkKind::kMultiplyAdd] += powers * square * width;
      work_[WorkKind::kGramAdd] += moves * state * width + powers * square * width;
      numbers(2.0 * moves * square + state);
    }
    return work_;
  }

  PlanWork diagonal() {
    const std::vector<std::int64_t> all = {0, query_.channels};
    const Slicing slicing = query_.element_size == sizeof(double) ? Slicing::cut<double>(all)
                                                                  : Slicing::cut<float>(all);
    const double slices = batch_ * static_cast<double>(slicing.count());
    const double lanes = 2.0 * static_cast<double>(slicing.half) / slicing.count();
    work_[WorkKind::kCall] += passes();
    work_[WorkKind::kTask] += passes() * (hops_ + 1.0) * slices;
    in_slices(hops_ * slices, lanes, 1.0);
    work_[WorkKind::kPacked] += state_ * (inputs_ + outputs_);
    if (query_.training) {
      in_slices(hops_ * slices, lanes, 2.0);
      const double partners = query_.temporal || query_.outputs == Outputs::kAll ? steps_ : 1.0;
      work_[WorkKind::kPacked] += state_ * (inputs_ + outputs_ + partners);
      if (query_.gso_values) {
        // Every state meets every entry once more, and states that are no outputs are walked to.
        const bool walks = query_.outputs == Outputs::kLast;
        const double again =
            walks ? static_cast<double>(ReplayLayout(query_.num_steps - 1).steps()) : 0.0;
        in_slices((hops_ + again) * slices, lanes, 1.0);
        if (walks) work_[WorkKind::kPacked] += state_ * inputs_ * (1.0 + again / steps_);
        numbers(slices * entries_);
      }
    }
    return work_;
  }

  PlanWork spectral() {
    const double basis = static_cast<double>(graph::eigen_basis_nonzeros(gso_));
    const bool sequence = query_.temporal || query_.outputs == Outputs::kAll;
    work_[WorkKind::kCall] += passes();
    work_[WorkKind::kTask] += passes() * batch_ * (inputs_ + outputs_);
    for (int pass = 0; pass < passes(); ++pass) {
      whole_rows((inputs_ + outputs_) * batch_, basis, WorkKind::kBasisEntry);
      numbers((inputs_ + outputs_) * state_);
    }
    // Products with dual numbers, and sums beside them, are some two and a half times the work.
    const double of_gradients = query_.training ? 3.5 : 1.0;
    if (sequence) {
      work_[WorkKind::kScan] += of_gradients * steps_ * state_;
    } else {
      work_[WorkKind::kSeries] +=
          of_gradients * 0.5 * nodes_ * channels_ *
          static_cast<double>(std::bit_width(static_cast<std::uint64_t>(query_.num_steps)));
      numbers(of_gradients * state_);
    }
    return work_;
  }

 private:
  int passes() const { return query_.training ? 2 : 1; }
  std::int64_t slice_lanes() const { return 128 / query_.element_size; }
  double padded(std::int64_t multiple) const {
    return static_cast<double>(round_up(query_.channels, multiple));
  }
  double bytes(double count) const { return count * static_cast<double>(query_.element_size); }

  void numbers(double count) {
    work_[bytes(3.0 * state_) > kNearBytes ? WorkKind::kNumberFar : WorkKind::kNumber] += count;
  }
  /// Products of so many copies, one after the other, with a matrix of `nonzeros` entries.
  void whole_rows(double copies, double nonzeros, WorkKind entry) {
    const bool far = bytes(2.0 * nodes_ * channels_) > kNearBytes;
    work_[entry] += copies * nonzeros;
    work_[far ? WorkKind::kRowNumberFar : WorkKind::kRowNumber] += copies * nonzeros * channels_;
  }
  void in_slices(double slice_hops, double lanes, double work_of_row) {
    const bool far = bytes(3.0 * nodes_ * lanes) > kNearBytes;
    work_[WorkKind::kSliceEntry] += slice_hops * entries_;
    work_[far ? WorkKind::kSliceNumberFar : WorkKind::kSliceNumber] +=
        slice_hops * entries_ * lanes;
    work_[WorkKind::kSliceRow] += slice_hops * nodes_ * lanes * work_of_row;
  }

  const PlanQuery& query_;
  double batch_, nodes_, entries_, channels_, steps_, hops_;
  double inputs_, outputs_;  // steps that come in, and go out
  double state_;             // numbers
  const graph::Gso& gso_;
  PlanWork work_;
};

}  // namespace

const PlanCosts& builtin_plan_costs() {
  // On one core of an AMD EPYC (Zen 4) with AVX-512: least squares on the times of 200 problems
  // (bench/plan_bench.cpp), then moved so that the choices among these lose least.
  static const PlanCosts costs = [] {
    PlanCosts c;
    c.of = {100,    32.9,  0.654,  0.0254, 0.0333, 0.0873, 0.151, 1.99, 0.0158,
            0.0241, 0.676, 0.0287, 0.0176, 1.64,   0.232,  0.228, 0.132};
    return c;
  }();
  return costs;
}

PlanWork plan_work(Plan plan, const graph::Gso& gso, const PlanQuery& query) {
  WorkCounter counter(gso, query);
  switch (plan) {
    case Plan::kDoubling:
      return counter.doubling();
    case Plan::kDiagonal:
      return counter.diagonal();
    case Plan::kSpectral:
      return counter.spectral();
    default:
      return counter.stepwise();
  }
}

std::string to_text(const PlanCosts& costs) {
  std::string text;
  for (const auto& row : kWorkKindNames) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", row.name, costs[row.value]);
  }
  return text;
}

PlanCosts plan_costs_from_text(std::string_view text) {
  PlanCosts costs;
  for (const auto& row : kWorkKindNames) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string prefix = fmt::format("{}=", row.name);
    char* stop = nullptr;
    const double price =
        word.rfind(prefix, 0) == 0 ? std::strtod(word.c_str() + prefix.size(), &stop) : -1.0;
    const bool whole = stop == word.c_str() + word.size() && word.size() > prefix.size();
    if (!whole || !std::isfinite(price) || price < 0.0) {
      throw base::Error({.what = "not a list of prices",
                         .expected = fmt::format("{}NUMBER, not negative", prefix),
                         .got = fmt::format("'{}'", word)});
    }
    costs[row.value] = price;
  }
  if (!text.empty()) {
    throw base::Error({.what = "not a list of prices",
                       .expected = "nothing more",
                       .got = fmt::format("'{}'", text)});
  }
  return costs;
}

}  // namespace mpssm::engine
