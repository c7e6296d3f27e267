// SPDX-License-Identifier: MIT
// Private to study/. Files of one JSON object per line, each of which names the row it belongs to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace mpssm::study {

/// A line of such a file.
struct JsonLine {
  std::string place;  ///< "results/gpp.jsonl:7", counted from 1
  std::string text;
  nlohmann::ordered_json json;
};

/// None if there is no such file. Throws base::Error with the place of a line that is no JSON.
std::vector<JsonLine> read_json_lines(const std::filesystem::path& path);

/// Calls add(json) for every line; what goes wrong there is thrown as base::Error with the place.
void for_each_json_line(const std::filesystem::path& path,
                        const std::function<void(const nlohmann::ordered_json&)>& add);

/// Puts `lines` in the place of those whose "row" is `row`, or at the end; other lines stay as they
/// are. The file is replaced whole or not at all, one process after the other.
void replace_lines_of(const std::filesystem::path& path, const std::string& row,
                      const std::string& lines);

/// For words that are shown: one line, nothing that moves a terminal's cursor.
std::string words_at(const nlohmann::ordered_json& json, const char* key);

std::int64_t whole_at(const nlohmann::ordered_json& json, const char* key);
std::optional<std::int64_t> whole_or_nothing_at(const nlohmann::ordered_json& json,
                                                const char* key);

template <typename Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

template <typename Value>
std::optional<Value> or_nothing(const nlohmann::ordered_json& value) {
  return value.is_null() ? std::nullopt : std::optional<Value>(value.get<Value>());
}

}  // namespace mpssm::study
