// SPDX-License-Identifier: MIT
// Numbers and tables as text: what every report for people is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mpssm::report {

using Rows = std::vector<std::vector<std::string>>;

/// Columns aligned, first row is the header, numbers to the right.
std::string table(const Rows& rows);

/// At most some 20 of many rows, the first and last among them: what a table shows.
std::vector<std::size_t> rows_to_show(std::size_t count);

/// Cells of a table.
std::string shown(double value);
std::string shown(std::int64_t value);
std::string counted(std::int64_t count, const std::string& what);  ///< "1 hop", "2 hops"
std::string percent(double share);                                 ///< without the sign

/// The same text for a terminal: what a line begins with ("note:", "mpssm:", "next:") in a colour,
/// the head of a table (a first line of columns, others below it) bold.
std::string coloured(std::string_view text);

}  // namespace mpssm::report
