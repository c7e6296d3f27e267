// SPDX-License-Identifier: MIT
// Private to data/: columns of a table of nodes as features and as labels.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/data/load.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {

/// "nan", "-inf", "Infinity", ...: what a number column may hold by mistake.
bool is_non_finite_word(std::string_view text);

/// Mean and deviation of `values`; scale 1 if they are all equal.
Column fit_number(const std::string& name, std::span<const double> values);

/// How a column becomes numbers: standardised numbers or, if a cell is text, one feature per value.
/// Adds a note if most of its cells are numbers all the same.
Column fit_column(const io::CsvTable& table, std::size_t column, bool standardise,
                  std::vector<std::string>& notes);

/// Features of the table by columns that were fitted to it or to another one. Adds notes about
/// values that are unknown to them.
Matrix apply_columns(const io::CsvTable& table, const std::vector<Column>& columns,
                     std::vector<std::string>& notes);

struct Labels {
  std::vector<float> target;  ///< NaN: none
  std::vector<std::string> class_names;
  Task task = Task::kNodeRegression;
};
/// Numbers with a fraction or of more than 50 values are a regression, all else classes, unless
/// `options` says what they are.
Labels read_labels(const io::CsvTable& table, std::size_t column, const LoadOptions& options,
                   std::vector<std::string>& notes);

/// For labels of classes that a trained model does not know.
std::string note_of_new_classes(const std::string& where, std::int64_t count,
                                const std::string& example);

}  // namespace mpssm::data
