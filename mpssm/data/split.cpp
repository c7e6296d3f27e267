// SPDX-License-Identifier: MIT
// Random stratified splits, and what every split must hold.
#include "mpssm/data/split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <numeric>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/base/random.h"

namespace mpssm::data {
namespace {

using base::Random;

constexpr std::array<double, 3> kShare = {0.5, 0.25, 0.25};
using Counts = std::array<std::int64_t, 3>;

std::int64_t total(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// How far a part is behind its share once one more sample is dealt.
double deficit(const Counts& counts, std::size_t part) {
  return kShare[part] * static_cast<double>(total(counts) + 1) - static_cast<double>(counts[part]);
}

// The part that the class lacks most; of equals, the one that all samples lack most. The first
// sample of a class goes to train, the second to val or test, the third to the other.
std::size_t part_behind(const Counts& in_class, const Counts& in_all) {
  std::size_t best = 0;
  for (std::size_t part = 1; part < kShare.size(); ++part) {
    const double gain = deficit(in_class, part) - deficit(in_class, best);
    if (gain > 0.0 || (gain == 0.0 && deficit(in_all, part) > deficit(in_all, best))) best = part;
  }
  return best;
}

// [part][class] of one split.
std::array<std::vector<std::int64_t>, 3> count_classes(std::span<const Part> split,
                                                       std::span<const std::int32_t> class_of,
                                                       std::size_t num_classes) {
  std::array<std::vector<std::int64_t>, 3> counts;
  counts.fill(std::vector<std::int64_t>(num_classes, 0));
  for (std::size_t i = 0; i < split.size(); ++i) {
    if (split[i] != Part::kNone) ++counts[static_cast<std::size_t>(split[i])][class_of[i]];
  }
  return counts;
}

}  // namespace

std::vector<std::int32_t> classes_of(const NodeData& data) {
  std::vector<std::int32_t> class_of(data.target.size(), -1);
  for (std::size_t i = 0; i < class_of.size(); ++i) {
    if (std::isnan(data.target[i])) continue;
    class_of[i] = data.class_names.empty() ? 0 : static_cast<std::int32_t>(data.target[i]);
  }
  return class_of;
}

std::vector<std::int32_t> classes_of(const GraphsData& data, Task task) {
  const bool of_graphs = is_of_graphs(task);
  const bool has_class = of_graphs && is_of_classes(task);
  std::vector<std::int32_t> class_of(static_cast<std::size_t>(data.num_graphs()), -1);
  for (std::int64_t g = 0; g < data.num_graphs(); ++g) {
    const std::int64_t first = (of_graphs ? g : data.node_ptr[g]) * data.target.columns;
    const std::int64_t end = (of_graphs ? g + 1 : data.node_ptr[g + 1]) * data.target.columns;
    for (std::int64_t i = first; i < end && class_of[g] < 0; ++i) {
      const float value = data.target.values[i];
      if (!std::isnan(value)) class_of[g] = has_class ? static_cast<std::int32_t>(value) : 0;
    }
  }
  return class_of;
}

std::vector<Part> random_split(const std::string& where, std::span<const std::int32_t> class_of,
                               std::uint64_t seed) {
  std::vector<std::vector<std::size_t>> members;
  std::int64_t labelled = 0;
  for (std::size_t i = 0; i < class_of.size(); ++i) {
    if (class_of[i] < 0) continue;
    if (static_cast<std::size_t>(class_of[i]) >= members.size()) members.resize(class_of[i] + 1);
    members[class_of[i]].push_back(i);
    ++labelled;
  }
  const auto num_classes = std::count_if(members.begin(), members.end(),
                                         [](const auto& of_class) { return !of_class.empty(); });
  const std::int64_t needed = std::max<std::int64_t>(num_classes, 1) + 2;
  if (labelled < needed) {
    throw base::Error(where,
                      fmt::format("expected at least {} labelled samples for a random split (each "
                                  "class in train, one each in val and test), got {}; label more",
                                  needed, labelled));
  }
  Random random(seed);
  std::vector<Part> split(class_of.size(), Part::kNone);
  Counts in_all = {};
  for (std::vector<std::size_t>& of_class : members) {
    random.shuffle(of_class);
    Counts in_class = {};
    for (const std::size_t i : of_class) {
      const std::size_t part = part_behind(in_class, in_all);
      split[i] = static_cast<Part>(part);
      ++in_class[part];
      ++in_all[part];
    }
  }
  return split;
}

void note_unused_seed(const std::string& where, const LoadOptions& options,
                      std::vector<std::string>& notes) {
  if (options.split_seed == 0 || options.columns != nullptr) return;
  notes.push_back("data.split_seed is not used: " + where + " comes with its split");
}

std::vector<Part> all_labelled_in_test(std::span<const float> target) {
  std::vector<Part> parts;
  for (const float value : target) parts.push_back(std::isnan(value) ? Part::kNone : Part::kTest);
  return parts;
}

void check_splits(const std::string& where, NodeData& data, std::vector<std::string>& notes) {
  const std::vector<std::int32_t> class_of = classes_of(data);
  const std::size_t num_classes = std::max<std::size_t>(data.class_names.size(), 1);
  for (std::size_t s = 0; s < data.splits.size(); ++s) {
    for (std::size_t i = 0; i < class_of.size(); ++i) {
      if (class_of[i] < 0) data.splits[s][i] = Part::kNone;
    }
    const std::string place = fmt::format("{}: split {}", where, s);
    check_parts(place, data.splits[s], "labelled node");
    const auto counts = count_classes(data.splits[s], class_of, num_classes);
    for (std::size_t c = 0; c < num_classes; ++c) {
      for (const Part part : {Part::kTrain, Part::kVal, Part::kTest}) {
        if (counts[static_cast<std::size_t>(part)][c] > 0) continue;
        const std::string missing =
            fmt::format("{}: class '{}' is missing in {}", place,
                        base::printable(data.class_names[c]), to_string(part));
        if (part == Part::kTrain) {
          throw base::Error(missing + "; move a node of it there, or drop the class");
        }
        if (num_classes == 2) notes.push_back(missing + ": ROC AUC is not defined there");
      }
    }
  }
}

void check_graph_split(const std::string& where, Task task, GraphsData& data) {
  const std::vector<std::int32_t> class_of = classes_of(data, task);
  for (std::size_t g = 0; g < class_of.size(); ++g) {
    if (class_of[g] < 0) data.part[g] = Part::kNone;
  }
  check_parts(where, data.part, "graph");
  if (!is_of_graphs(task)) return;
  const auto counts =
      count_classes(data.part, class_of, std::max<std::size_t>(data.class_names.size(), 1));
  for (std::size_t c = 0; c < data.class_names.size(); ++c) {
    if (counts[static_cast<std::size_t>(Part::kTrain)][c] > 0) continue;
    throw base::Error(where, fmt::format("class '{}' is missing in train; move a graph of it "
                                         "there, or drop the class",
                                         base::printable(data.class_names[c])));
  }
}

void check_parts(const std::string& where, std::span<const Part> part, const char* samples) {
  for (const Part wanted : {Part::kTrain, Part::kVal, Part::kTest}) {
    if (std::find(part.begin(), part.end(), wanted) != part.end()) continue;
    throw base::Error(
        where, fmt::format("expected at least one {} in {}, got none", samples, to_string(wanted)));
  }
}

}  // namespace mpssm::data
