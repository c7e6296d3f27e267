// SPDX-License-Identifier: MIT
// Private to report/: what pages are made of beside charts: frame, tables, numbers, embedded bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mpssm::report::page {

/// What every page begins with: files of another kind are not replaced.
inline constexpr std::string_view kFirstLine = "<!doctype html>\n<!-- mpssm report -->\n";

/// style sheet or script of that name in this folder ("page.css"); written by CMake.
const char* page_file(std::string_view name);

std::string base64(std::string_view bytes);
/// JSON that may stand inside <script>.
std::string script_safe(std::string_view json);

/// 12345 as "12,345".
std::string grouped(std::int64_t number);
/// Four significant digits, or a dash.
std::string short_number(double value);

struct Column {
  std::string title;
  bool is_number = false;
};
struct Table {
  std::string caption = {};
  std::vector<Column> columns = {};                 ///< without any title there is no head
  std::vector<std::vector<std::string>> rows = {};  ///< plain text
  std::vector<std::size_t> strong = {};             ///< rows in bold
  bool is_sortable = false;
};
std::string table_html(const Table& table);

struct Section {
  std::string id;
  std::string title;
  std::string body;  ///< markup
};
struct Page {
  std::string title;
  std::string lead = {};               ///< plain text below it
  std::vector<Section> sections = {};  ///< those without body are left out
  bool has_explorer = false;
};
/// The whole file: no address in it is ever loaded, and a policy forbids it.
std::string page_html(const Page& page);

}  // namespace mpssm::report::page
