// SPDX-License-Identifier: MIT
#include "mpssm/train/checkpoint.h"

#include <array>
#include <cmath>
#include <cstring>
#include <fmt/core.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include <torch/types.h>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/io/safetensors.h"
#include "mpssm/train/config.h"

namespace mpssm::train {
namespace {

using base::Error;

constexpr std::array<std::pair<torch::ScalarType, const char*>, 4> kTypes = {{
    {torch::kFloat, "F32"},
    {torch::kDouble, "F64"},
    {torch::kLong, "I64"},
    {torch::kByte, "U8"},
}};

io::RawTensor to_raw(const torch::Tensor& tensor) {
  const torch::Tensor dense = tensor.detach().contiguous();
  for (const auto& [type, name] : kTypes) {
    if (dense.scalar_type() != type) continue;
    io::RawTensor raw{name, dense.sizes().vec(), {}};
    raw.bytes.resize(dense.nbytes());
    std::memcpy(raw.bytes.data(), dense.data_ptr(), dense.nbytes());
    return raw;
  }
  throw std::logic_error("checkpoint: a tensor of type " + c10::str(tensor.scalar_type()));
}

torch::Tensor from_raw(const io::RawTensor& raw, const std::string& origin,
                       const std::string& name) {
  for (const auto& [type, known] : kTypes) {
    if (raw.dtype != known) continue;
    torch::Tensor tensor = torch::empty(raw.shape, type);
    std::memcpy(tensor.data_ptr(), raw.bytes.data(), raw.bytes.size());
    return tensor;
  }
  throw Error(origin, fmt::format("tensor '{}': expected type F32, F64, I64 or U8, got {}",
                                  base::printable(name), base::printable(raw.dtype)));
}

void add_weights(io::SafeTensors& file, const std::string& prefix, const Weights& weights) {
  for (const auto& [name, tensor] : weights) file.tensors[prefix + name] = to_raw(tensor);
}

Weights take_weights(const io::SafeTensors& file, const std::string& prefix,
                     const std::string& origin) {
  Weights weights;
  for (const auto& [name, raw] : file.tensors) {
    if (name.starts_with(prefix)) {
      weights[name.substr(prefix.size())] = from_raw(raw, origin, name);
    }
  }
  return weights;
}

/// JSON has neither infinities nor NaN, and a metric may be any of them: these go in as text.
nlohmann::json number_to_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0.0 ? "inf" : "-inf";
}

double number_from_json(const nlohmann::json& json) {
  if (!json.is_string()) return json.get<double>();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto text = json.get<std::string>();
  return text == "inf"    ? infinity
         : text == "-inf" ? -infinity
                          : std::numeric_limits<double>::quiet_NaN();
}

nlohmann::json to_json(const Position& position) {
  return {{"epoch", position.epoch},
          {"batch", position.batch},
          {"step", position.step},
          {"loss_sum", position.loss_sum},
          {"lr_factor", position.lr_factor},
          {"evals_since_gain", position.evals_since_gain},
          {"evals_since_drop", position.evals_since_drop},
          {"has_best", position.has_best},
          {"best_value", number_to_json(position.best_value)},
          {"best_step", position.best_step},
          {"finished", position.finished},
          {"seconds", position.seconds},
          {"history", position.history}};
}

Position position_from(const std::string& text, const std::string& origin) {
  const Error unreadable(origin + ": the position of the run cannot be read");
  Position position;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    json.at("epoch").get_to(position.epoch);
    json.at("batch").get_to(position.batch);
    json.at("step").get_to(position.step);
    json.at("loss_sum").get_to(position.loss_sum);
    json.at("lr_factor").get_to(position.lr_factor);
    json.at("evals_since_gain").get_to(position.evals_since_gain);
    json.at("evals_since_drop").get_to(position.evals_since_drop);
    json.at("has_best").get_to(position.has_best);
    position.best_value = number_from_json(json.at("best_value"));
    json.at("best_step").get_to(position.best_step);
    json.at("finished").get_to(position.finished);
    json.at("seconds").get_to(position.seconds);
    json.at("history").get_to(position.history);
  } catch (const nlohmann::json::exception&) {
    throw unreadable;
  }
  const bool is_possible = position.epoch >= 0 && position.batch >= 0 && position.best_step >= 0 &&
                           position.step >= position.best_step;
  if (!is_possible) throw unreadable;
  return position;
}

/// Whether two settings differ in nothing but how long they train.
bool is_same_but_length(const std::string& a, const std::string& b, const std::string& origin) {
  if (a == b) return true;
  Config one;
  Config other;
  try {
    apply_toml(one, a, origin);
    apply_toml(other, b, origin);
  } catch (const Error&) {
    return false;
  }
  one.train.epochs = other.train.epochs;
  one.train.patience = other.train.patience;
  return to_toml(one) == to_toml(other);
}

const std::string& metadata_of(const io::SafeTensors& file, const std::string& key,
                               const std::string& origin) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) {
    throw Error(origin, fmt::format("no '{}' in its metadata; was this written by mpssm?", key));
  }
  return found->second;
}

}  // namespace

Weights copy_weights(const torch::nn::Module& module) {
  Weights weights;
  for (const auto& item : module.named_parameters())
    weights[item.key()] = item.value().detach().clone();
  for (const auto& item : module.named_buffers())
    weights[item.key()] = item.value().detach().clone();
  return weights;
}

void set_weights(torch::nn::Module& module, const Weights& weights, const std::string& origin) {
  const torch::NoGradGuard no_grad;
  std::size_t used = 0;
  const auto set = [&](const std::string& name, torch::Tensor target) {
    const auto found = weights.find(name);
    if (found == weights.end()) {
      throw Error(origin, fmt::format("no weight '{}', which the model has", name));
    }
    const torch::Tensor& value = found->second;
    if (value.sizes() != target.sizes() || value.scalar_type() != target.scalar_type()) {
      throw Error(origin, fmt::format("weight '{}': expected {} {}, got {} {}", name,
                                      c10::str(target.sizes()), c10::str(target.scalar_type()),
                                      c10::str(value.sizes()), c10::str(value.scalar_type())));
    }
    target.copy_(value);
    ++used;
  };
  for (const auto& item : module.named_parameters()) set(item.key(), item.value());
  for (const auto& item : module.named_buffers()) set(item.key(), item.value());
  if (used == weights.size()) return;
  for (const auto& [name, tensor] : weights) {
    if (!module.named_parameters().contains(name) && !module.named_buffers().contains(name)) {
      throw Error(origin, fmt::format("weight '{}' is not of this model", base::printable(name)));
    }
  }
}

void save_model(const std::filesystem::path& path, const Weights& weights,
                const std::map<std::string, std::string>& metadata) {
  io::SafeTensors file;
  file.metadata = metadata;
  add_weights(file, "", weights);
  io::write_safetensors(path, file);
}

ModelFile load_model(const std::filesystem::path& path) {
  io::SafeTensors file = io::read_safetensors(path);
  return {take_weights(file, "", path.string()), std::move(file.metadata)};
}

void save_state(const std::filesystem::path& path, const torch::nn::Module& module, Adam& adam,
                const at::Generator& generator, const Weights& best, const Weights& average,
                const Position& position, const std::string& config) {
  io::SafeTensors file;
  file.metadata["config"] = config;
  file.metadata["position"] = to_json(position).dump();
  add_weights(file, "model.", copy_weights(module));
  add_weights(file, "best.", best);
  add_weights(file, "ema.", average);
  for (const Adam::Slot& slot : adam.slots()) {
    file.tensors["adam.mean." + slot.name] = to_raw(slot.mean);
    file.tensors["adam.variance." + slot.name] = to_raw(slot.variance);
  }
  file.tensors["generator"] = to_raw(generator.get_state());
  io::write_safetensors(path, file);
}

RestoredState load_state(const std::filesystem::path& path, torch::nn::Module& module, Adam& adam,
                         at::Generator& generator, const std::string& config) {
  const std::string origin = path.string();
  const io::SafeTensors file = io::read_safetensors(path);
  if (!is_same_but_length(metadata_of(file, "config", origin), config, origin)) {
    throw Error(origin + ": was written under other settings than config.toml beside it");
  }
  RestoredState state{position_from(metadata_of(file, "position", origin), origin),
                      take_weights(file, "best.", origin), take_weights(file, "ema.", origin)};
  set_weights(module, take_weights(file, "model.", origin), origin);
  const auto restore = [&](const std::string& name, torch::Tensor target) {
    const auto found = file.tensors.find(name);
    const torch::Tensor value =
        found == file.tensors.end() ? torch::Tensor() : from_raw(found->second, origin, name);
    if (!value.defined() || value.sizes() != target.sizes() ||
        value.scalar_type() != target.scalar_type()) {
      throw Error(origin, fmt::format("tensor '{}' is missing or has another shape", name));
    }
    target.copy_(value);
  };
  for (Adam::Slot& slot : adam.slots()) {
    restore("adam.mean." + slot.name, slot.mean);
    restore("adam.variance." + slot.name, slot.variance);
  }
  adam.set_num_steps(state.position.step);
  torch::Tensor generator_state = generator.get_state();
  restore("generator", generator_state);
  try {
    generator.set_state(generator_state);
  } catch (const c10::Error&) {
    throw Error(origin + ": the state of the random generator cannot be used");
  }
  return state;
}

}  // namespace mpssm::train
