// SPDX-License-Identifier: MIT
// Private to data/: columns of a table as features and as labels.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/data/load.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {

/// "inf", "-Infinity", "1e999": a number by its looks that none can hold.
bool is_beyond_numbers(std::string_view cell);

/// Mean and deviation of `values`; scale 1 if they are all equal.
Column fit_number(const std::string& name, std::span<const double> values);

/// The feature of tables that have none, and whether a trained model has learned from it.
inline constexpr std::string_view kDegree = "degree";
bool is_degree(const LoadOptions& options);

/// What may be learned from: all rows but those of val and test.
std::vector<bool> rows_to_learn_from(std::span<const Part> parts);

enum class Wanted { kAuto, kNumeric, kCategorical, kText };

/// How a column becomes numbers, learned from the rows marked in `learn`; what kind of column it is
/// is told by all rows. nullopt: it is left out, and the report says why. Adds a note where a user
/// may have meant something else. Throws base::Error where only the user can know.
std::optional<Column> fit_column(const io::CsvTable& table, std::size_t column,
                                 const std::vector<bool>& learn, Wanted wanted, bool standardise,
                                 ColumnReport& report, std::vector<std::string>& notes);

/// What it becomes, for people; without the count of missing cells.
ColumnReport report_of(const Column& column);

/// Features of the table by columns that were fitted to it or to another one. Adds a report for
/// each, and notes about values that are unknown to them.
Matrix apply_columns(const io::CsvTable& table, const std::vector<Column>& columns,
                     std::vector<ColumnReport>& reports, std::vector<std::string>& notes);

/// All features of a table: fits the columns numbered `candidates`, or applies those of a trained
/// model if `options` has some. Empty `fitted`: there is nothing that can be used.
struct Features {
  std::vector<Column> fitted = {};
  Matrix values = {};
};
Features read_table_features(const io::CsvTable& table, std::span<const std::size_t> candidates,
                             const std::vector<bool>& learn, const LoadOptions& options,
                             std::vector<ColumnReport>& reports, std::vector<std::string>& notes);

/// The names in a setting like data.ignore, "a,b"; each must be a column of the table.
std::vector<std::string> columns_named(const io::CsvHeader& table, const std::string& setting,
                                       const std::string& names);

struct Labels {
  std::vector<float> target;  ///< NaN: none
  std::vector<std::string> class_names;
  std::string why = {};  ///< they are read like this
};
/// Numbers with a fraction or of more than 50 values are a regression, all else classes, unless
/// `options` says what they are.
Labels read_labels(const io::CsvTable& table, std::size_t column, const LoadOptions& options,
                   std::vector<std::string>& notes);

/// For labels of classes that a trained model does not know.
std::string note_of_new_classes(const std::string& where, std::int64_t count,
                                const std::string& example);

/// The column 'split', a part for each row.
std::vector<Part> read_parts(const io::CsvTable& table, std::size_t column);

}  // namespace mpssm::data
