// SPDX-License-Identifier: MIT
#include "mpssm/report/run_record.h"

#include <fmt/core.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/json_text.h"

namespace mpssm::report {
namespace {

using nlohmann::ordered_json;

std::int64_t whole_at(const ordered_json& json, const char* key) {
  const ordered_json& value = json.at(key);
  if (value.is_number_integer()) return value.get<std::int64_t>();
  throw base::Error(fmt::format("'{}': expected a whole number", key));
}

double number_of(const ordered_json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

const ordered_json& object_of(const ordered_json& json) {
  if (json.is_object()) return json;
  throw base::Error("expected an object of names and numbers, got " + base::printable(json.dump()));
}

Metrics metrics_of(const ordered_json& json) {
  Metrics metrics;
  for (const auto& [name, value] : object_of(json).items()) metrics[name] = number_of(value);
  return metrics;
}

}  // namespace

std::string to_json(const RunRecord& record, int indent) {
  ordered_json references = ordered_json::object();
  for (const RunRecord::Reference& reference : record.references) {
    references[reference.name] = reference.test;
  }
  ordered_json json = {
      {"run", record.run},
      {"dataset", record.dataset},
      {"task", record.task},
      {"protocol", record.protocol},
      {"selected_by", record.metric},
      {"seed", record.seed},
      {"split", record.split},
      {"parameters", record.num_parameters},
      {"steps", record.steps},
      {"best_step", record.best_step},
      {"metrics", record.metrics},
      {"references", references},
      {"seconds", record.seconds},
      {"peak_mib", record.peak_mib},
      {"version", record.version},
  };
  return io::json_text(json, indent);
}

RunRecord run_record_from_json(std::string_view text, const std::string& origin) {
  RunRecord record;
  try {
    const auto json = ordered_json::parse(text);
    record.version = json.at("version");
    record.run = json.at("run");
    record.dataset = json.at("dataset");
    record.task = json.at("task");
    record.metric = json.at("selected_by");
    record.protocol = json.at("protocol");
    record.seed = whole_at(json, "seed");
    record.split = whole_at(json, "split");
    record.num_parameters = whole_at(json, "parameters");
    record.steps = whole_at(json, "steps");
    record.best_step = whole_at(json, "best_step");
    record.seconds = number_of(json.at("seconds"));
    record.peak_mib = number_of(json.at("peak_mib"));
    for (const auto& [part, metrics] : object_of(json.at("metrics")).items()) {
      record.metrics[part] = metrics_of(metrics);
    }
    for (const auto& [name, test] : object_of(json.at("references")).items()) {
      record.references.push_back({name, metrics_of(test)});
    }
  } catch (const ordered_json::exception& error) {
    throw base::Error(origin + ": not the record of a run", error.what());
  } catch (const base::Error& error) {
    throw error.within(origin + ": not the record of a run");
  }
  return record;
}

}  // namespace mpssm::report
