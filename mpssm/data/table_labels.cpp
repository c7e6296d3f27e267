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
#include "mpssm/data/cells.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/tables.h"

namespace mpssm::data {
namespace {

constexpr std::size_t kMaxNumericClasses = 50;
constexpr std::size_t kFewClasses = 10;

// Beyond 2^53 not every whole number is a double.
bool is_whole(double number) { return number == std::floor(number) && std::abs(number) <= 0x1p53; }

// The label column with the way its numbers are written.
class Cells {
 public:
  Cells(const io::CsvTable& table, std::size_t column)
      : table_(table), column_(column), decimal_comma_(spelling_of_numbers(table, column).second) {}

  std::size_t size() const { return table_.rows.size(); }
  std::string_view operator[](std::size_t row) const { return table_.rows[row][column_]; }
  std::optional<double> number(std::size_t row) const {
    return parse_number((*this)[row], decimal_comma_);
  }
  /// "1", "01" and "1.0" are one class.
  std::string class_name(std::size_t row) const {
    const auto value = number(row);
    return value && is_whole(*value) ? std::to_string(static_cast<std::int64_t>(*value))
                                     : std::string((*this)[row]);
  }
  std::string place(std::size_t row) const { return table_.place(row, column_); }
  const io::CsvTable& table() const { return table_; }

 private:
  const io::CsvTable& table_;
  std::size_t column_;
  bool decimal_comma_;
};

struct Survey {
  std::set<std::string> classes;
  std::int64_t labelled = 0;
  std::int64_t words_for_none = 0;
  std::optional<std::size_t> first_number;    // row
  std::optional<std::size_t> first_text;      // row
  std::optional<std::size_t> first_fraction;  // row
};

Survey survey(const Cells& cells) {
  Survey result;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    if (is_missing(cells[row])) {
      if (!cells[row].empty()) ++result.words_for_none;
      continue;
    }
    ++result.labelled;
    result.classes.insert(cells.class_name(row));
    const auto number = cells.number(row);
    if (!number && !result.first_text) result.first_text = row;
    if (number && !result.first_number) result.first_number = row;
    if (number && !is_whole(*number) && !result.first_fraction) result.first_fraction = row;
  }
  return result;
}

[[noreturn]] void fail_not_a_number(const Cells& cells, std::size_t row) {
  throw base::Error(cells.place(row), fmt::format("expected a number or an empty cell, got '{}'",
                                                  base::printable(cells[row])));
}

std::vector<std::string> sorted_classes(const Survey& found) {
  std::vector<std::string> names(found.classes.begin(), found.classes.end());
  if (!found.first_text && !found.first_fraction) {
    std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
      return *io::to_number(a) < *io::to_number(b);
    });
  }
  return names;
}

std::vector<float> read_numbers(const Cells& cells) {
  std::vector<float> target(cells.size(), kNoLabel);
  for (std::size_t row = 0; row < target.size(); ++row) {
    if (is_missing(cells[row])) continue;
    const auto number = cells.number(row);
    if (!number) fail_not_a_number(cells, row);
    if (!std::isfinite(static_cast<float>(*number))) {
      throw base::Error(cells.place(row),
                        fmt::format("expected a number that fits 32 bits, got '{}'",
                                    base::printable(cells[row])));
    }
    target[row] = static_cast<float>(*number);
  }
  return target;
}

std::vector<float> read_classes(const Cells& cells, const std::vector<std::string>& names,
                                bool skip_new, std::vector<std::string>& notes) {
  std::unordered_map<std::string_view, std::size_t> number_of;
  for (const std::string& name : names) number_of.emplace(name, number_of.size());
  std::vector<float> target(cells.size(), kNoLabel);
  std::int64_t skipped = 0;
  std::string example;
  for (std::size_t row = 0; row < target.size(); ++row) {
    if (is_missing(cells[row])) continue;
    const auto found = number_of.find(cells.class_name(row));
    if (found == number_of.end() && skip_new) {
      if (skipped++ == 0) example = cells[row];
      continue;
    }
    if (found == number_of.end()) {
      throw base::Error(cells.place(row),
                        fmt::format("expected one of the {} known classes, got '{}'", names.size(),
                                    base::printable(cells[row])));
    }
    target[row] = static_cast<float>(found->second);
  }
  if (skipped > 0) {
    notes.push_back(note_of_new_classes(shown(cells.table().path), skipped, example));
  }
  return target;
}

// Of many different numbers each has to come back, or they are no classes.
bool are_few(const Survey& found) {
  const auto labelled = static_cast<std::size_t>(found.labelled);
  return found.classes.size() <= kMaxNumericClasses &&
         (found.classes.size() <= kFewClasses || labelled >= 3 * found.classes.size());
}

bool is_regression(Task task) {
  return task == Task::kNodeRegression || task == Task::kGraphRegression;
}

bool are_numbers(const Cells& cells, const LoadOptions& options, const Survey& found) {
  if (options.class_names != nullptr) return options.class_names->empty();
  if (options.task) return is_regression(*options.task);
  if (found.first_text && found.first_number) {
    // Text among numbers is more likely a slip than a class.
    const bool slip = is_beyond_numbers(cells[*found.first_text]);
    if (slip || found.first_fraction) fail_not_a_number(cells, *found.first_text);
  }
  if (found.first_text) return false;
  return found.first_fraction || !are_few(found);
}

std::string why_of(const Survey& found, bool are_values) {
  if (found.first_text) return fmt::format("text, {} different values", found.classes.size());
  if (are_values) {
    return found.first_fraction ? "numbers with fractions"
                                : fmt::format("{} different whole numbers", found.classes.size());
  }
  return fmt::format("{} different whole numbers", found.classes.size());
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
  const Cells cells(table, column);
  const Survey found = survey(cells);
  const bool predicting = options.columns != nullptr;
  if (found.classes.empty() && !predicting) {
    throw base::Error(where + ": expected labels, got empty cells only");
  }
  if (found.words_for_none > 0) {
    notes.push_back(fmt::format("{}: {} cell(s) with words such as NA count as no label", where,
                                found.words_for_none));
  }
  Labels labels;
  const bool are_values = are_numbers(cells, options, found);
  labels.why = fmt::format("column '{}' holds {}{}", base::printable(table.header[column]),
                           why_of(found, are_values),
                           options.task && !predicting ? ", and data.task says so" : "");
  if (are_values) {
    labels.target = read_numbers(cells);
    return labels;
  }
  labels.class_names =
      options.class_names != nullptr ? *options.class_names : sorted_classes(found);
  labels.target = read_classes(cells, labels.class_names, options.skip_new_classes, notes);
  if (labels.class_names.size() < 2) {
    throw base::Error(
        where,
        fmt::format("expected at least two classes, got '{}' only",
                    base::printable(labels.class_names.empty() ? "" : labels.class_names[0])));
  }
  return labels;
}

std::vector<Part> read_parts(const io::CsvTable& table, std::size_t column) {
  std::vector<Part> parts;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string_view cell = table.rows[row][column];
    if (is_missing(cell) || cell == "none") {
      parts.push_back(Part::kNone);
    } else if (cell == "train" || cell == "training" || cell == "0") {
      parts.push_back(Part::kTrain);
    } else if (cell == "val" || cell == "valid" || cell == "validation" || cell == "dev" ||
               cell == "1") {
      parts.push_back(Part::kVal);
    } else if (cell == "test" || cell == "2") {
      parts.push_back(Part::kTest);
    } else {
      throw base::Error(
          table.place(row, column),
          fmt::format("expected train, val, test (or 0, 1, 2) or an empty cell, got '{}'",
                      base::printable(cell)));
    }
  }
  return parts;
}

}  // namespace mpssm::data
