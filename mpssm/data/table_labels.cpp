// SPDX-License-Identifier: MIT
// The label column of a table: classes or numbers.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <optional>
#include <set>
#include <unordered_map>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/tables.h"
#include "mpssm/data/tasks.h"

namespace mpssm::data {
namespace {

constexpr std::size_t kMaxNumericClasses = 50;

// Beyond 2^53 not every whole number is a double.
bool is_whole(double number) { return number == std::floor(number) && std::abs(number) <= 0x1p53; }

// "1", "01" and "1.0" are one class.
std::string class_name(std::string_view cell) {
  const auto number = io::to_number(cell);
  return number && is_whole(*number) ? std::to_string(static_cast<std::int64_t>(*number))
                                     : std::string(cell);
}

struct Survey {
  std::set<std::string> classes;
  std::optional<std::size_t> first_number;    // row
  std::optional<std::size_t> first_text;      // row
  std::optional<std::size_t> first_fraction;  // row
};

Survey survey(const io::CsvTable& table, std::size_t column) {
  Survey result;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string_view cell = table.rows[row][column];
    if (cell.empty()) continue;
    result.classes.insert(class_name(cell));
    const auto number = io::to_number(cell);
    if (!number && !result.first_text) result.first_text = row;
    if (number && !result.first_number) result.first_number = row;
    if (number && !is_whole(*number) && !result.first_fraction) result.first_fraction = row;
  }
  return result;
}

[[noreturn]] void fail_not_a_number(const io::CsvTable& table, std::size_t row,
                                    std::size_t column) {
  throw base::Error(table.place(row, column),
                    fmt::format("expected a number or an empty cell, got '{}'",
                                base::printable(table.rows[row][column])));
}

std::vector<std::string> sorted_classes(const Survey& found) {
  std::vector<std::string> names(found.classes.begin(), found.classes.end());
  if (!found.first_text) {
    std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
      return *io::to_number(a) < *io::to_number(b);
    });
  }
  return names;
}

std::vector<float> read_numbers(const io::CsvTable& table, std::size_t column) {
  std::vector<float> target(table.rows.size(), kNoLabel);
  for (std::size_t row = 0; row < target.size(); ++row) {
    const std::string_view cell = table.rows[row][column];
    if (cell.empty()) continue;
    const auto number = io::to_number(cell);
    if (!number) fail_not_a_number(table, row, column);
    if (!std::isfinite(static_cast<float>(*number))) {
      throw base::Error(
          table.place(row, column),
          fmt::format("expected a number that fits 32 bits, got '{}'", base::printable(cell)));
    }
    target[row] = static_cast<float>(*number);
  }
  return target;
}

std::vector<float> read_classes(const io::CsvTable& table, std::size_t column,
                                const std::vector<std::string>& names, bool skip_new,
                                std::vector<std::string>& notes) {
  std::unordered_map<std::string_view, std::size_t> number_of;
  for (const std::string& name : names) number_of.emplace(name, number_of.size());
  std::vector<float> target(table.rows.size(), kNoLabel);
  std::int64_t skipped = 0;
  std::string example;
  for (std::size_t row = 0; row < target.size(); ++row) {
    const std::string_view cell = table.rows[row][column];
    if (cell.empty()) continue;
    const auto found = number_of.find(class_name(cell));
    if (found == number_of.end() && skip_new) {
      if (skipped++ == 0) example = cell;
      continue;
    }
    if (found == number_of.end()) {
      throw base::Error(table.place(row, column),
                        fmt::format("expected one of the {} known classes, got '{}'", names.size(),
                                    base::printable(cell)));
    }
    target[row] = static_cast<float>(found->second);
  }
  if (skipped > 0) notes.push_back(note_of_new_classes(shown(table.path), skipped, example));
  return target;
}

bool are_numbers(const io::CsvTable& table, std::size_t column, const LoadOptions& options,
                 const Survey& found) {
  if (options.class_names != nullptr) return options.class_names->empty();
  if (options.task) return *options.task == Task::kNodeRegression;
  if (found.first_text && found.first_number) {
    // Text among numbers is more likely a slip than a class.
    const bool slip = is_non_finite_word(table.rows[*found.first_text][column]);
    if (slip || found.first_fraction) fail_not_a_number(table, *found.first_text, column);
  }
  if (found.first_text) return false;
  return found.first_fraction || found.classes.size() > kMaxNumericClasses;
}

}  // namespace

std::string note_of_new_classes(const std::string& where, std::int64_t count,
                                const std::string& example) {
  return fmt::format(
      "{}: {} label(s) of a class that the model has never seen, such as '{}', count as no label",
      where, count, base::printable(example));
}

Labels read_labels(const io::CsvTable& table, std::size_t column, const LoadOptions& options,
                   std::vector<std::string>& notes) {
  const std::string where =
      fmt::format("{}: column '{}'", shown(table.path), base::printable(table.header[column]));
  const Survey found = survey(table, column);
  const bool predicting = options.columns != nullptr;
  if (found.classes.empty() && !predicting) {
    throw base::Error(where + ": expected labels, got empty cells only");
  }
  Labels labels;
  if (are_numbers(table, column, options, found)) {
    labels.target = read_numbers(table, column);
  } else {
    labels.class_names =
        options.class_names != nullptr ? *options.class_names : sorted_classes(found);
    labels.target =
        read_classes(table, column, labels.class_names, options.skip_new_classes, notes);
    if (labels.class_names.size() < 2) {
      throw base::Error(
          where,
          fmt::format("expected at least two classes, got '{}' only",
                      base::printable(labels.class_names.empty() ? "" : labels.class_names[0])));
    }
  }
  labels.task = choose_node_task(where, labels.class_names.size(), options.task);
  return labels;
}

}  // namespace mpssm::data
