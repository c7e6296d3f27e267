// SPDX-License-Identifier: MIT
#include "mpssm/train/config.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <fmt/core.h>
#include <optional>
#include <sstream>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "mpssm/base/error.h"
#include "mpssm/base/nearest.h"
#include "mpssm/base/printable.h"
#include "mpssm/engine/node_encodings.h"
#include "mpssm/engine/plan_costs.h"
#include "mpssm/io/csv.h"

namespace mpssm::train {
namespace {

using base::Error;

/// Settings that have a name out of a table, or "auto" for none of them.
template <typename T>
constexpr bool kIsNamed = base::NamedEnum<T>;
template <typename T>
constexpr bool kIsNamed<std::optional<T>> = base::NamedEnum<T>;

template <base::NamedEnum T>
std::string names_of(T value) {
  return table_of(value).names();
}
template <base::NamedEnum T>
std::string names_of(const std::optional<T>&) {
  return "auto, " + table_of(T{}).names();
}

template <base::NamedEnum T>
std::string_view name_of(T value) {
  return table_of(value).name(value);
}
template <base::NamedEnum T>
std::string_view name_of(const std::optional<T>& value) {
  return value ? name_of(*value) : "auto";
}

template <base::NamedEnum T>
bool take_name(std::string_view name, T& member) {
  const std::optional<T> value = table_of(member).find(name);
  if (value) member = *value;
  return value.has_value();
}
template <base::NamedEnum T>
bool take_name(std::string_view name, std::optional<T>& member) {
  member = table_of(T{}).find(name);
  return member || name == "auto";
}

std::string names_of(const graph::GsoGroups&) { return graph::gso_group_names(); }
std::string name_of(const graph::GsoGroups& value) { return to_string(value); }

template <typename T>
constexpr std::string_view type_name() {
  if constexpr (std::same_as<T, bool>) return "true or false";
  if constexpr (std::same_as<T, std::int64_t>) return "a whole number";
  if constexpr (std::same_as<T, double>) return "a number";
  return "text in quotes";
}

bool is_section(const std::string& name) {
  bool found = false;
  const Config any;
  visit_settings(any, [&](std::string_view key, const auto&, std::string_view) {
    found = found || key.starts_with(name + ".");
  });
  return found;
}

[[noreturn]] void throw_unknown_key(const std::string& place, std::string_view key) {
  std::vector<std::string_view> known;
  Config any;
  visit_settings(any,
                 [&](std::string_view name, auto&, std::string_view) { known.push_back(name); });
  std::string message = fmt::format("{}unknown key '{}'", place, base::printable(key));
  std::string_view close = base::nearest(key, known);
  // "channels" alone is a slip for "model.channels".
  for (const std::string_view name : known) {
    if (close.empty() && name.ends_with(fmt::format(".{}", key))) close = name;
  }
  message += close.empty() ? "; `mpssm train --keys` lists them"
                           : fmt::format("; did you mean '{}'?", close);
  throw Error(message);
}

/// Finds the setting and hands it to `assign`, which returns false if the value has another type. A
/// name is assigned as text first.
template <typename Assign>
void assign_setting(Config& config, const std::string& place, std::string_view key,
                    const Assign& assign) {
  bool found = false;
  visit_settings(config, [&](std::string_view name, auto& member, std::string_view) {
    if (name != key) return;
    found = true;
    using Member = std::remove_reference_t<decltype(member)>;
    const std::string where = fmt::format("{}{}", place, key);
    const auto must_fit = [&](auto& value) {
      if (!assign(value)) throw Error(where, fmt::format("expected {}", type_name<Member>()));
    };
    if constexpr (std::same_as<Member, std::optional<data::EdgeUse>>) {
      // Runs of 0.3.0 and older have true or false here.
      bool is_directed = false;
      if (assign(is_directed)) {
        member = is_directed ? std::optional(data::EdgeUse::kForward) : std::nullopt;
        return;
      }
    }
    if constexpr (std::same_as<Member, graph::GsoGroups>) {
      std::string text;
      must_fit(text);
      try {
        member.groups = graph::gso_groups_from_text(text).groups;
      } catch (const std::invalid_argument& error) {
        throw Error(where, base::printable(error.what()));
      }
    } else if constexpr (kIsNamed<Member>) {
      std::string text;
      must_fit(text);
      if (take_name(text, member)) return;
      throw Error({.where = where,
                   .expected = "one of " + names_of(member),
                   .got = fmt::format("'{}'", base::printable(text))});
    } else {
      must_fit(member);
    }
  });
  if (!found) throw_unknown_key(place, key);
  config.given.emplace(key);
}

bool take(const toml::node& node, bool& member) {
  const auto value = node.value_exact<bool>();
  if (value) member = *value;
  return value.has_value();
}
bool take(const toml::node& node, std::int64_t& member) {
  const auto value = node.value_exact<std::int64_t>();
  if (value) member = *value;
  return value.has_value();
}
bool take(const toml::node& node, double& member) {
  if (!node.is_number()) return false;
  member = *node.value<double>();
  return std::isfinite(member);
}
/// A list of texts is one text, with commas.
bool take(const toml::node& node, std::string& member) {
  if (const toml::array* list = node.as_array(); list != nullptr && !list->empty()) {
    member.clear();
    for (const toml::node& item : *list) {
      const auto value = item.value_exact<std::string>();
      if (!value) return false;
      member += (member.empty() ? "" : ",") + *value;
    }
    return true;
  }
  const auto value = node.value_exact<std::string>();
  if (value) member = *value;
  return value.has_value();
}

bool take(std::string_view text, bool& member) {
  if (text != "true" && text != "false") return false;
  member = text == "true";
  return true;
}
bool take(std::string_view text, std::int64_t& member) {
  const auto value = io::to_integer(text);
  if (value) member = *value;
  return value.has_value();
}
bool take(std::string_view text, double& member) {
  const auto value = io::to_number(text);
  if (value) member = *value;
  return value.has_value();
}
bool take(std::string_view text, std::string& member) {
  member = text;
  return true;
}

std::string place_of(const std::string& origin, const toml::source_region& source) {
  std::string place = origin + ":";
  if (source.begin.line > 0) place += fmt::format("{}:", source.begin.line);
  return place + " ";
}

void apply_table(Config& config, const toml::table& table, const std::string& prefix,
                 const std::string& origin) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      // With keys in it, the first of them is the one to name.
      if (inner->empty() && !is_section(name)) {
        throw_unknown_key(place_of(origin, node.source()), name);
      }
      apply_table(config, *inner, name + ".", origin);
      continue;
    }
    assign_setting(config, place_of(origin, node.source()), name,
                   [&node = node](auto& member) { return take(node, member); });
  }
}

/// Settings are two levels deep. The parser calls itself for each level, and asserts that there are
/// no control characters, so both are checked before it sees the text.
class TomlGuard {
 public:
  TomlGuard(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  void check() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') advance();
        continue;
      }
      if (c == '.' && ++dots_ > kMaxDots) fail("expected keys of two parts, got one of many");
      if (c == '[' || c == '{') ++brackets_;
      if (c == ']' || c == '}') brackets_ = std::max(brackets_ - 1, 0);
      if (brackets_ > kMaxBrackets) fail("expected no lists in lists, got many");
      if (kEndsOfKeys.find(c) != std::string_view::npos) dots_ = 0;
      advance();
    }
  }

 private:
  static constexpr int kMaxDots = 8;
  static constexpr int kMaxBrackets = 8;
  static constexpr std::string_view kEndsOfKeys = "\n=[]{},";

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}:{}:{}: {}", origin_, line_, column_, what));
  }

  void advance() {
    const auto c = static_cast<unsigned char>(text_[at_]);
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) {
      fail("expected text, got the control character '" + base::printable(text_.substr(at_, 1)) +
           "'");
    }
    ++at_;
    ++column_;
    if (c == '\n') {
      ++line_;
      column_ = 1;
    }
  }

  // One that has no end is left to the parser to complain about.
  void skip_string(char quote) {
    const std::string three(3, quote);
    const bool is_long = text_.substr(at_, 3) == three;
    const std::string_view end = std::string_view(three).substr(0, is_long ? 3 : 1);
    for (std::size_t i = 0; i < end.size(); ++i) advance();
    while (at_ < text_.size() && text_.substr(at_, end.size()) != end) {
      if (!is_long && text_[at_] == '\n') return;
      if (quote == '"' && text_[at_] == '\\') advance();
      if (at_ < text_.size()) advance();
    }
    // A long string may end with one or two quotes of its own before the three.
    const std::size_t most = is_long ? 5 : 1;
    for (std::size_t i = 0; i < most && at_ < text_.size() && text_[at_] == quote; ++i) advance();
  }

  std::string_view text_;
  const std::string& origin_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::int64_t column_ = 1;
  int dots_ = 0;
  int brackets_ = 0;
};

std::string toml_value(bool value) { return value ? "true" : "false"; }
std::string toml_value(std::int64_t value) { return std::to_string(value); }
std::string toml_value(double value) {
  std::string result = io::number_text(value);
  // TOML tells integers and floats apart by the point.
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}
template <typename T>
requires kIsNamed<T> std::string toml_value(const T& value) {
  return fmt::format("\"{}\"", name_of(value));
}
std::string toml_value(const graph::GsoGroups& value) {
  return fmt::format("\"{}\"", name_of(value));
}
std::string toml_value(const std::string& value) {
  std::ostringstream out;
  out << toml::value<std::string>(value);
  return out.str();
}

bool needs_hops(ModelKind kind) {
  return kind == ModelKind::kAdgn || kind == ModelKind::kLinearGcn ||
         kind == ModelKind::kLinearGcnShared || kind == ModelKind::kLinearBlocks;
}

void expect(bool holds, std::string_view key, const std::string& expected, const std::string& got) {
  if (!holds) {
    throw Error(std::string(key), fmt::format("expected {}, got {}", expected, got));
  }
}

}  // namespace

void check_toml_text(std::string_view text, const std::string& origin) {
  TomlGuard(text, origin).check();
}

void apply_toml(Config& config, std::string_view text, const std::string& origin) {
  check_toml_text(text, origin);
  toml::table table;
  try {
    table = toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    throw Error(place_of(origin, error.source()) + std::string(error.description()));
  }
  apply_table(config, table, "", origin);
}

void apply_setting(Config& config, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw Error("--set: expected KEY=VALUE, got '" + base::printable(assignment) + "'");
  }
  const std::string_view value = assignment.substr(equals + 1);
  assign_setting(config, "--set: ", assignment.substr(0, equals),
                 [&](auto& member) { return take(value, member); });
}

void check(const Config& config) {
  visit_settings(config, [](std::string_view key, const auto& value, std::string_view) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::same_as<Value, std::int64_t> || std::same_as<Value, double>) {
      expect(value >= 0, key, "0 or more", toml_value(value));
    }
  });
  const ModelConfig& model = config.model;
  // Bounds far above any use, so that a slip gives a message and not an allocation failure.
  const auto expect_range = [](std::string_view key, std::int64_t value, std::int64_t low,
                               std::int64_t high) {
    expect(value >= low && value <= high, key, fmt::format("a number from {} to {}", low, high),
           std::to_string(value));
  };
  expect_range("model.channels", model.channels, 1, 1 << 16);
  expect_range("model.state_channels", model.state_channels, 0, 1 << 17);
  expect(model.state == nn::StateKind::kDense || model.state_channels % 2 == 0,
         "model.state_channels", "an even number with a diagonal state (channels come in pairs)",
         std::to_string(model.state_channels));
  expect_range("model.blocks", model.blocks, 1, 4096);
  expect_range("model.hops", model.hops, 0, 1'000'000);
  expect_range("model.delay", model.delay, 1, 4096);
  expect_range("model.state_size", model.state_size, 1, 4096);
  expect_range("model.heads", model.heads, 1, 4096);
  expect(model.channels % model.heads == 0 ||
             (model.kind != ModelKind::kGat && model.kind != ModelKind::kGps),
         "model.heads", fmt::format("a divisor of model.channels ({})", model.channels),
         std::to_string(model.heads));
  expect(model.hops >= 1 || !needs_hops(model.kind), "model.hops",
         fmt::format("1 or more with model.kind = {}", to_string(model.kind)), "0");
  expect_range("model.hops_per_step", model.hops_per_step, 1, 1'000);
  expect(model.hops_per_step == 1 || model.kind == ModelKind::kMpssm, "model.hops_per_step",
         fmt::format("1 with model.kind = {}", to_string(model.kind)),
         std::to_string(model.hops_per_step));
  const auto groups = std::ssize(model.gso.groups);
  expect(groups == 1 || model.kind == ModelKind::kMpssm, "model.gso",
         fmt::format("one operator with model.kind = {}", to_string(model.kind)),
         name_of(model.gso));
  expect(groups == 1 || groups <= model.channels / 2, "model.gso",
         fmt::format("at most one group for each pair of the {} channels", model.channels),
         name_of(model.gso));
  expect_range("model.adaptive_rank", model.gso.adaptive_rank, 1, 4096);
  expect_range("model.readout_layers", model.readout_layers, 1, 64);
  expect_range("train.epochs", config.train.epochs, 1, 1'000'000'000);
  expect_range("train.batch", config.train.batch, 1, 1'000'000'000);
  expect_range("train.pieces", config.train.pieces, 1, 65536);
  expect(config.train.pieces == 1 ||
             (model.norm != nn::NormKind::kBatch && model.state_norm != nn::NormKind::kBatch),
         "train.pieces", "1 with batch norm, which looks at a whole batch",
         std::to_string(config.train.pieces));
  expect_range("train.eval_every", config.train.eval_every, 1, 1'000'000'000);
  expect(model.state == nn::StateKind::kDense || model.kind != ModelKind::kMpssm ||
             model.state_channels > 0 || model.channels % 2 == 0,
         "model.channels", "an even number with a diagonal state (channels come in pairs)",
         std::to_string(model.channels));
  if (model.plan_costs != engine::kBuiltinCosts && model.plan_costs != engine::kMeasuredCosts) {
    try {
      engine::plan_costs_from_text(model.plan_costs);
    } catch (const base::Error& error) {
      throw error.within("model.plan_costs").with_hint("builtin and measured are fine, too");
    }
  }
  try {
    engine::encodings_from_text(config.data.encodings);
  } catch (const base::Error& error) {
    throw error.within("data.encodings");
  }
  expect(model.dropout < 1.0, "model.dropout", "a number in [0, 1)", toml_value(model.dropout));
  expect(model.input_dropout < 1.0, "model.input_dropout", "a number in [0, 1)",
         toml_value(model.input_dropout));
  expect(model.readout_dropout < 1.0, "model.readout_dropout", "a number in [0, 1)",
         toml_value(model.readout_dropout));
  expect(config.train.ema < 1.0, "train.ema", "a number in [0, 1)", toml_value(config.train.ema));
  // As nn::StateMatrix wants it: exp(-exp(nu)) reaches neither 0 nor 1.
  expect(model.min_modulus > 0.0, "model.min_modulus", "a number above 0",
         toml_value(model.min_modulus));
  expect(model.min_modulus <= model.max_modulus && model.max_modulus < 1.0, "model.max_modulus",
         "a number from model.min_modulus (" + toml_value(model.min_modulus) + ") to below 1",
         toml_value(model.max_modulus));
  const TrainConfig& train = config.train;
  expect(train.lr > 0.0, "train.lr", "a number above 0", toml_value(train.lr));
  expect(train.plateau_factor > 0.0 && train.plateau_factor < 1.0, "train.plateau_factor",
         "a number between 0 and 1", toml_value(train.plateau_factor));
  const bool in_float32 = train.precision == engine::Precision::kFloat32;
  expect(in_float32 || model.kind == ModelKind::kMpssm, "train.precision",
         fmt::format("float32 with model.kind = {}", to_string(model.kind)),
         toml_value(train.precision));
  expect(in_float32 || model.plan != engine::Plan::kReference, "train.precision",
         "float32 with model.plan = reference", toml_value(train.precision));
  constexpr double kLongestPeriod = 1e7;
  expect(config.data.period == 0.0 ||
             (config.data.period >= 2.0 && config.data.period <= kLongestPeriod),
         "data.period", "0 or a number of steps from 2 to 10,000,000",
         toml_value(config.data.period));
  expect_range("data.harmonics", config.data.harmonics, 0, 100);
  const bool learns_entries = model.entries != nn::EntriesKind::kFixed;
  expect(!learns_entries || model.kind == ModelKind::kMpssm, "model.entries",
         fmt::format("fixed with model.kind = {}", to_string(model.kind)),
         toml_value(model.entries));
  expect(!learns_entries || groups == 1, "model.entries",
         fmt::format("fixed with groups of channels (model.gso = {})", name_of(model.gso)),
         toml_value(model.entries));
  expect(!learns_entries ||
             (model.plan != engine::Plan::kDoubling && model.plan != engine::Plan::kSpectral),
         "model.plan",
         fmt::format("auto, stepwise, diagonal or reference with model.entries = {}",
                     to_string(model.entries)),
         toml_value(model.plan));
  expect(config.data.train_ratio < 1.0, "data.train_ratio", "a number below 1",
         toml_value(config.data.train_ratio));
}

std::string to_toml(const Config& config) {
  std::string text;
  std::string section;
  visit_settings(config, [&](std::string_view key, const auto& value, std::string_view) {
    const std::size_t dot = key.find('.');
    const std::string_view now = dot == std::string_view::npos ? "" : key.substr(0, dot);
    if (now != section) {
      section = now;
      text += "\n[" + section + "]\n";
    }
    text += fmt::format("{} = {}\n", key.substr(now.empty() ? 0 : dot + 1), toml_value(value));
  });
  return text;
}

std::vector<Setting> settings_of(const Config& config) {
  std::vector<Setting> settings;
  visit_settings(config, [&](std::string_view key, const auto& value, std::string_view help) {
    using Value = std::remove_cvref_t<decltype(value)>;
    Setting setting{.key = std::string(key), .value = {}, .help = std::string(help)};
    if constexpr (std::same_as<Value, std::string>) {
      setting.value = value;
    } else if constexpr (std::same_as<Value, double>) {
      setting.value = io::number_text(value);
    } else if constexpr (kIsNamed<Value> || std::same_as<Value, graph::GsoGroups>) {
      setting.value = name_of(value);
      setting.help += (help.empty() ? "" : ": ") + names_of(value);
    } else {
      setting.value = toml_value(value);
    }
    settings.push_back(std::move(setting));
  });
  return settings;
}

Config with_given(Config base, const Config& wanted) {
  for (const Setting& setting : settings_of(wanted)) {
    if (wanted.given.contains(setting.key)) apply_setting(base, setting.key + "=" + setting.value);
  }
  return base;
}

std::string first_difference(const Config& there, const Config& here) {
  const std::vector<Setting> stored = settings_of(there);
  const std::vector<Setting> wanted = settings_of(here);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (stored[i].value == wanted[i].value) continue;
    return fmt::format("{} is {} there, {} here", wanted[i].key, stored[i].value, wanted[i].value);
  }
  return "";
}

}  // namespace mpssm::train
