// SPDX-License-Identifier: MIT
#include "mpssm/report/page_text.h"

#include <cmath>
#include <fmt/core.h>

#include "mpssm/report/svg.h"
#include "mpssm/version.h"

namespace mpssm::report::page {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) -> std::uint32_t {
      return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0;
    };
    const std::uint32_t group = byte(0) << 16 | byte(1) << 8 | byte(2);
    const std::size_t digits = std::min<std::size_t>(bytes.size() - i, 3) + 1;
    for (std::size_t d = 0; d < 4; ++d) {
      out += d < digits ? kDigits[group >> (18 - 6 * d) & 63] : '=';
    }
  }
  return out;
}

std::string script_safe(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    // In JSON these stand in strings only.
    if (c == '<') {
      out += "\\u003c";
    } else if (c == '>') {
      out += "\\u003e";
    } else if (c == '&') {
      out += "\\u0026";
    } else {
      out += c;
    }
  }
  return out;
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string short_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value) : "-";
}

std::string table_html(const Table& table) {
  std::string out =
      fmt::format("<div class=\"wide{}\"{}><table{}>", table.rows.size() > 14 ? " scroll" : "",
                  // What scrolls must be reached by keys.
                  table.rows.size() > 14
                      ? fmt::format(" tabindex=\"0\" role=\"region\" aria-label=\"{}\"",
                                    svg::escaped(table.caption.empty() ? "Table" : table.caption))
                      : "",
                  table.is_sortable ? " class=\"sortable\"" : "");
  if (!table.caption.empty()) out += "<caption>" + svg::escaped(table.caption) + "</caption>";
  std::string titles;
  for (const Column& column : table.columns) titles += column.title;
  out += titles.empty() ? "" : "<thead><tr>";
  for (const Column& column : table.columns) {
    if (titles.empty()) break;
    out += fmt::format("<th scope=\"col\"{}>{}</th>", column.is_number ? " class=\"n\"" : "",
                       svg::escaped(column.title));
  }
  out += titles.empty() ? "<tbody>\n" : "</tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    bool is_strong = false;
    for (const std::size_t strong : table.strong) is_strong |= strong == r;
    out += is_strong ? "<tr class=\"ours\">" : "<tr>";
    for (std::size_t c = 0; c < table.rows[r].size(); ++c) {
      const bool is_number = c < table.columns.size() && table.columns[c].is_number;
      const bool is_head = titles.empty() && c == 0;
      out += fmt::format("<{}{}>{}</{}>", is_head ? "th scope=\"row\"" : "td",
                         is_number ? " class=\"n\"" : "", svg::escaped(table.rows[r][c]),
                         is_head ? "th" : "td");
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string page_html(const Page& page) {
  std::string out(kFirstLine);
  out += fmt::format(
      "<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<title>{}</title>\n<style>\n{}</style></head>\n<body>\n"
      "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header><h1>{}</h1>\n",
      svg::escaped(page.title), page_file("page.css"), svg::escaped(page.title));
  if (!page.lead.empty()) out += "<p class=\"lead\">" + svg::escaped(page.lead) + "</p>\n";
  std::string links, body;
  for (const Section& section : page.sections) {
    if (section.body.empty()) continue;
    const std::string title = svg::escaped(section.title);
    links += fmt::format("<li><a href=\"#{}\">{}</a></li>", section.id, title);
    body += fmt::format("<section aria-labelledby=\"{}\"><h2 id=\"{}\">{}</h2>\n{}</section>\n",
                        section.id, section.id, title, section.body);
  }
  out += "<nav aria-label=\"Contents\"><ul>" + links +
         "</ul></nav></header>\n<main id=\"main\">\n" + body +
         fmt::format(
             "</main>\n<footer><p>Written by mpssm {}. This file needs no other and no "
             "network.</p></footer>\n",
             kVersion);
  out += fmt::format("<script>\n{}</script>\n", page_file("page.js"));
  if (page.has_explorer) out += fmt::format("<script>\n{}</script>\n", page_file("explorer.js"));
  return out + "</body></html>\n";
}

}  // namespace mpssm::report::page
