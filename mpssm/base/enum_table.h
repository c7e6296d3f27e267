// SPDX-License-Identifier: MIT
// The names of an enum's values, written down once, next to the enum:
//
//   enum class Colour { kRed, kGreen };
//   inline constexpr base::EnumRow<Colour> kColours[] = {{Colour::kRed, "red"}, ...};
//   constexpr base::EnumTable<Colour> table_of(Colour) { return kColours; }
//
// Everything else (settings, their help, lists in messages) finds table_of() by the enum alone.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace mpssm::base {

template <typename Enum>
struct EnumRow {
  Enum value;
  std::string_view name;
};

template <typename Enum>
class EnumTable {
 public:
  template <std::size_t kCount>
  constexpr EnumTable(const EnumRow<Enum> (&rows)[kCount]) : rows_(rows) {}

  constexpr std::span<const EnumRow<Enum>> rows() const { return rows_; }

  constexpr std::string_view name(Enum value) const {
    for (const EnumRow<Enum>& row : rows_) {
      if (row.value == value) return row.name;
    }
    return "unknown";
  }

  constexpr std::optional<Enum> find(std::string_view name) const {
    for (const EnumRow<Enum>& row : rows_) {
      if (row.name == name) return row.value;
    }
    return std::nullopt;
  }

  /// "a, b, c".
  std::string names() const {
    std::string text;
    for (const EnumRow<Enum>& row : rows_) text.append(text.empty() ? "" : ", ").append(row.name);
    return text;
  }

  /// Throws std::invalid_argument: "<function>: expected one of a, b, c, got 'text'".
  Enum from_name(std::string_view function, std::string_view text) const {
    if (const std::optional<Enum> value = find(text)) return *value;
    throw std::invalid_argument(std::string(function)
                                    .append(": expected one of ")
                                    .append(names())
                                    .append(", got '")
                                    .append(text)
                                    .append("'"));
  }

 private:
  std::span<const EnumRow<Enum>> rows_;
};

/// An enum whose values have names.
template <typename Enum>
concept NamedEnum = std::is_enum_v<Enum> && requires(Enum value) {
  table_of(value);
};

}  // namespace mpssm::base
