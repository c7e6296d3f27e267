// SPDX-License-Identifier: MIT
// Which reader: by registered name, by built-in name, or by what a path holds.
#include "mpssm/data/load.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/nearest.h"
#include "mpssm/base/printable.h"
#include "mpssm/base/utf8.h"
#include "mpssm/data/builtin.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/folder.h"
#include "mpssm/data/partition.h"
#include "mpssm/data/paths.h"
#include "mpssm/data/readers.h"
#include "mpssm/data/registry.h"
#include "mpssm/data/split.h"
#include "mpssm/io/file.h"

namespace mpssm::data {
namespace {

namespace fs = std::filesystem;

// What each file is found as, empty where it is absent.
std::vector<fs::path> locate(const std::vector<DatasetFile>& files,
                             const std::vector<fs::path>& folders) {
  std::vector<fs::path> found;
  for (const DatasetFile& file : files) {
    found.emplace_back();
    for (const fs::path& folder : folders) {
      for (const fs::path& name : {fs::path(file.name), fs::path(file.name).filename()}) {
        if (found.back().empty() && is_file(folder / name)) found.back() = folder / name;
      }
    }
  }
  return found;
}

bool is_complete(const std::vector<fs::path>& found) {
  return !found.empty() && std::none_of(found.begin(), found.end(),
                                        [](const fs::path& path) { return path.empty(); });
}

[[noreturn]] void fail_absent(const DatasetInfo& info, const std::vector<fs::path>& found,
                              const std::vector<fs::path>& folders) {
  const auto absent = std::find(found.begin(), found.end(), fs::path()) - found.begin();
  const DatasetFile& file = info.files[static_cast<std::size_t>(absent)];
  std::string places;
  for (const fs::path& folder : folders) places += (places.empty() ? "" : ", ") + shown(folder);
  throw base::Error(
      info.name,
      fmt::format("{} not found in {}; get it from {} and put it into {} (or set --data-dir)",
                  file.name, places, file.source, shown(folders.front())));
}

void check_sha256(const DatasetInfo& info, const DatasetFile& file, const fs::path& path) {
  if (file.sha256.empty()) return;
  const std::string found = io::sha256_of_file(path);
  if (found == file.sha256) return;
  constexpr std::size_t kShown = 12;
  throw base::Error(
      info.name,
      fmt::format("{}: expected sha256 {}..., got {}...; the file can still be used by its path",
                  shown(path), file.sha256.substr(0, kShown), found.substr(0, kShown)));
}

PackedLayout packed_layout(const DatasetInfo& info) {
  PackedLayout layout{.target = info.target, .scale_by_train_maximum = info.metric == "log10_mse"};
  if (info.target != "labels") return layout;
  layout.vocabulary = {119, 5, 12, 12, 10, 6, 6, 2, 2};  // OGB's atoms
  if (info.task == Task::kGraphLabels) {
    layout.target_names = {"antifungal",       "cell_cell_communication",
                           "anticancer",       "drug_delivery_vehicle",
                           "antimicrobial",    "antiviral",
                           "antihypertensive", "antibacterial",
                           "antiparasitic",    "toxic"};
  } else {
    layout.target_names = {"Inertia_mass_a",    "Inertia_mass_b",    "Inertia_mass_c",
                           "Inertia_valence_a", "Inertia_valence_b", "Inertia_valence_c",
                           "length_a",          "length_b",          "length_c",
                           "Spherocity",        "Plane_best_fit"};
  }
  return layout;
}

Dataset read_registered_series(const DatasetInfo& info, const std::vector<fs::path>& paths,
                               const LoadOptions& options) {
  SeriesProtocol protocol =
      info.metric == "mae" ? traffic_protocol() : temporal_protocol(info.lags > 0 ? info.lags : 4);
  protocol.over_all_time = info.over_all_time;
  protocol.period = info.period;
  if (paths[0].extension() == ".json") return read_series_json(paths[0], protocol, options);
  const io::Npz npz = io::Npz::open(paths[0]);
  if (paths.size() == 1) return read_series_npz(npz, nullptr, protocol, options);
  const io::Npz graph = io::Npz::open(paths[1]);
  return read_series_npz(npz, &graph, protocol, options);
}

Dataset read_registered(const DatasetInfo& info, const std::vector<DatasetFile>& files,
                        const std::vector<fs::path>& paths, const LoadOptions& options) {
  for (std::size_t i = 0; i < files.size(); ++i) check_sha256(info, files[i], paths[i]);
  Dataset dataset;
  if (info.task == Task::kForecast) {
    dataset = read_registered_series(info, paths, options);
  } else {
    const io::Npz npz = io::Npz::open(paths[0]);
    dataset = info.target.empty() ? read_node_npz(npz, options)
                                  : read_packed_npz(npz, packed_layout(info), options);
    dataset.protocol = info.protocol;
  }
  if (dataset.task != info.task) {
    throw base::Error(info.name,
                      fmt::format("{}: expected data for task {}, got {}", shown(paths[0]),
                                  to_string(info.task), to_string(dataset.task)));
  }
  dataset.name = info.name;
  dataset.metric = info.metric;
  return dataset;
}

Dataset load_registered(const DatasetInfo& info, const LoadOptions& options) {
  if (options.task && *options.task != info.task) {
    throw base::Error(info.name, fmt::format("expected task {}, got {}", to_string(info.task),
                                             to_string(*options.task)));
  }
  const std::vector<fs::path> folders = data_folders(options);
  const std::vector<fs::path> found = locate(info.files, folders);
  if (is_complete(found)) return read_registered(info, info.files, found, options);
  const std::vector<fs::path> others = locate(info.alternatives, folders);
  if (is_complete(others)) return read_registered(info, info.alternatives, others, options);
  const DatasetInfo* fallback = find_dataset(info.fallback);
  if (fallback == nullptr || !is_complete(locate(fallback->files, folders))) {
    fail_absent(info, found, folders);
  }
  Dataset dataset = load_registered(*fallback, options);
  dataset.notes.push_back(fmt::format(
      "{}: files not found; took {} ({}): results are not comparable with published {} numbers",
      info.name, fallback->name, fallback->summary, info.name));
  return dataset;
}

// PyTorch Geometric's x, edge_index and y of one graph, and no series: that has steps for its rows.
bool has_pyg_names(const io::Npz& npz, const LoadOptions& options) {
  if (!npz.has("x") || npz.header("x").shape.size() != 2) return false;
  if (npz.has("y") || npz.has("train_mask")) return true;
  const bool needs_no_labels = options.columns != nullptr || options.task == Task::kLinks;
  return npz.has("edge_index") && needs_no_labels && options.task &&
         *options.task != Task::kForecast;
}

Dataset read_arrays(const io::Npz& npz, const LoadOptions& options) {
  if (npz.has("node_ptr")) {
    PackedLayout layout{.is_own = true};
    if (!options.target.empty()) layout.target = options.target;
    return read_packed_npz(npz, layout, options);
  }
  if (npz.has("node_features") || has_pyg_names(npz, options)) return read_node_npz(npz, options);
  if (npz.has("speed")) return read_series_npz(npz, nullptr, traffic_protocol(), options);
  if (npz.has("x") || npz.has("values")) return read_series_npz(npz, nullptr, {}, options);
  std::string found;
  for (const std::string& name : npz.names()) found += (found.empty() ? "" : ", ") + name;
  throw base::Error(shown(npz.path()) +
                    ": expected arrays 'node_ptr' (packed graphs), 'node_features' or 'x' and 'y' "
                    "(one graph) or 'x', 'values', 'speed' (series), got " +
                    (found.empty() ? "none" : base::printable(found, 200)));
}

Dataset read_npz(const fs::path& path, const LoadOptions& options) {
  const io::Npz npz = io::Npz::open(path);
  Dataset dataset = read_arrays(npz, options);
  std::vector<std::string> unread = npz.unread_names();
  // What save_npz() adds, where a setting has overruled it.
  std::erase_if(unread, [](const std::string& name) {
    return name == "task" || name == "directed" || name == "class_names" || name == "label_scale";
  });
  if (!unread.empty()) {
    dataset.notes.push_back(shown(path) + ": not used: " + listed("array", unread));
  }
  return dataset;
}

// Settings that mean nothing to what was read: better an error than a belief.
void refuse_unused(const std::string& name, const LoadOptions& options, Dataset& dataset) {
  const bool is_series = std::holds_alternative<SeriesData>(dataset.content);
  const bool is_graphs = std::holds_alternative<GraphsData>(dataset.content);
  const bool is_made = is_builtin(name);
  const auto refuse = [&](const std::string& setting, const std::string& why) {
    throw base::Error(setting,
                      fmt::format("{} {}; leave the setting out", base::printable(name, 200), why));
  };
  if (!is_series) {
    const char* why = "is no series and has no windows";
    if (options.lags) refuse("data.lags", why);
    if (options.horizon) refuse("data.horizon", why);
    if (options.train_ratio) refuse("data.train_ratio", why);
    if (options.period) refuse("data.period", "is no series and repeats nothing");
  }
  if (options.directed) {
    if (is_graphs && !is_folder(name)) {
      refuse("data.directed", "is many graphs, whose edges run as they are listed");
    }
    if (is_made) refuse("data.directed", "is made, with edges both ways");
  }
  const fs::path path = name;
  const bool is_table =
      !is_ogb_folder(path) && (is_folder(path) || is_csv(path) || !dataset.columns.empty());
  if (is_made || find_dataset(name) != nullptr || !is_table) {
    const std::pair<const char*, const std::string&> settings[] = {
        {"data.id", options.id},
        {"data.ignore", options.ignore},
        {"data.categorical", options.categorical},
        {"data.numeric", options.numeric},
        {"data.text", options.text}};
    for (const auto& [setting, value] : settings) {
      if (!value.empty()) refuse(setting, "is no table and has no columns");
    }
  }
  if (dataset.task == Task::kLinks && !options.target.empty()) {
    refuse("data.target", "is asked for its edges, and no column is learned");
  }
  const auto* nodes = std::get_if<NodeData>(&dataset.content);
  const bool has_choice =
      (is_graphs || (is_series && is_table)) && !is_made && find_dataset(name) == nullptr;
  const bool is_taken = has_choice || (nodes != nullptr && nodes->target_name == options.target);
  if (!options.target.empty() && !is_taken) {
    refuse("data.target",
           fmt::format("has no target of the name '{}'{}", base::printable(options.target),
                       nodes != nullptr ? ": its labels are in 'node_labels' (or 'y')" : ""));
  }
  if (is_made && options.task && *options.task != dataset.task) {
    refuse("data.task", fmt::format("is for {}", to_string(dataset.task)));
  }
  if (!is_made && options.make_seed != 0) {
    dataset.notes.push_back("data.make_seed is not used: " + base::printable(name, 200) +
                            " is not made but read");
  }
  if (is_series || is_made) note_unused_seed(base::printable(name, 200), options, dataset.notes);
}

// What to do about files that others write.
std::string way_out_of(const fs::path& extension) {
  const std::string_view ending = extension.native();
  if (ending == ".pt" || ending == ".pth" || ending == ".pkl" || ending == ".pickle") {
    return "pickled Python is never loaded; in Python: numpy.savez('g.npz', x=data.x, "
           "edge_index=data.edge_index, y=data.y)";
  }
  if (ending == ".gexf" || ending == ".net" || ending == ".graph6" || ending == ".dot") {
    return "in Python: networkx.write_graphml(graph, 'g.graphml')";
  }
  if (ending == ".parquet" || ending == ".feather") {
    return "in Python: pandas.read_parquet(path).to_csv('nodes.csv', index=False)";
  }
  if (ending == ".xlsx" || ending == ".xls" || ending == ".ods") return "save its sheets as CSV";
  if (ending == ".h5" || ending == ".hdf5" || ending == ".mat") {
    return "write its arrays to an npz: numpy.savez('g.npz', ...)";
  }
  return {};
}

Dataset read_path(const fs::path& path, const LoadOptions& options) {
  if (is_ogb_folder(path)) return read_ogb_folder(path, options);
  if (is_folder(path)) return read_folder(path, options);
  const fs::path extension = path.extension() == ".gz" ? path.stem().extension() : path.extension();
  if (extension == ".graphml" || extension == ".xml") return read_graphml(path, options);
  if (extension == ".gml") return read_gml(path, options);
  if (extension == ".npz") return read_npz(path, options);
  if (extension == ".json" && is_node_link(path)) return read_node_link_json(path, options);
  if (extension == ".json") return read_series_json(path, temporal_protocol(0), options);
  if (is_csv(path)) return read_beside(path, options);
  throw base::Error(
      {.where = shown(path),
       .expected = "a folder with nodes.csv and edges.csv, or a .csv, .npz, .json, .graphml or "
                   ".gml file",
       .got = fmt::format("a file ending in '{}'", shown(extension)),
       .hint = way_out_of(extension)});
}

// More than a name: a folder in it, or one of the endings that are read.
bool looks_like_a_path(const std::string& name) {
  const fs::path extension = fs::path(name).extension();
  return name.find('/') != std::string::npos || name == "." || name == ".." ||
         extension == ".npz" || extension == ".json" || extension == ".graphml" ||
         extension == ".gml" || is_csv(name);
}

// Something is there, but nothing that can be read.
void refuse_other_kinds(const fs::path& path) {
  std::error_code error;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status) && fs::is_symlink(fs::symlink_status(path, ignored))) {
    throw base::Error(shown(path) + ": expected a file or folder, got a link that leads " +
                      "nowhere");
  }
  if (status.type() == fs::file_type::not_found) return;
  if (!fs::status_known(status)) {
    throw base::Error(shown(path) + ": cannot open: " + error.message());
  }
  throw base::Error(shown(path) +
                    ": expected a file or folder, got a device, pipe or socket; write its " +
                    "content to a file first");
}

// The whole path goes into records and models, which are UTF-8: better refused now than after the
// training.
void check_utf8(const std::string& path) {
  if (base::is_utf8(path)) return;
  throw base::Error(shown(path) +
                    ": expected a path in UTF-8, got other bytes; rename the file or folder");
}

// What read_path() and load_registered() read.
std::vector<fs::path> paths_of(const fs::path& path) {
  if (is_ogb_folder(path)) return ogb_files(path);
  if (is_folder(path) || is_csv(path)) return tables_of(path);
  return {path};
}

std::vector<fs::path> paths_of(const DatasetInfo& info, const LoadOptions& options) {
  const std::vector<fs::path> folders = data_folders(options);
  for (const std::vector<DatasetFile>* files : {&info.files, &info.alternatives}) {
    const std::vector<fs::path> found = locate(*files, folders);
    if (is_complete(found)) return found;
  }
  const DatasetInfo* fallback = find_dataset(info.fallback);
  return fallback == nullptr ? std::vector<fs::path>() : paths_of(*fallback, options);
}

[[noreturn]] void fail_unknown(const std::string& name) {
  refuse_other_kinds(name);
  std::vector<std::string_view> known = {"board", "properties"};
  for (const DatasetInfo& info : registry()) known.push_back(info.name);
  const std::string_view near = base::nearest(name, known);
  if (looks_like_a_path(name)) {
    throw base::Error(base::printable(name, 400) + ": expected a file or folder, got none there" +
                      (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?"));
  }
  std::string list;
  for (const std::string_view other : known)
    list += (list.empty() ? "" : ", ") + std::string(other);
  throw base::Error(fmt::format(
      "'{}': expected a dataset, a file or a folder, got none of that name; {}",
      base::printable(name, 200),
      near.empty() ? "known datasets: " + list : fmt::format("did you mean '{}'?", near)));
}

}  // namespace

std::vector<std::filesystem::path> data_folders(const LoadOptions& options) {
  std::vector<fs::path> folders;
  if (!options.data_dir.empty()) folders.push_back(options.data_dir);
  const auto add_from = [&](const char* variable, const char* below) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') return false;
    folders.push_back(fs::path(value) / below);
    return true;
  };
  if (const char* value = std::getenv("MPSSM_DATA"); value != nullptr && *value != '\0') {
    folders.emplace_back(value);
  }
  folders.emplace_back("data");
  if (!add_from("XDG_CACHE_HOME", "mpssm")) add_from("HOME", ".cache/mpssm");
  return folders;
}

bool holds_series(const std::string& path) {
  if (is_folder(path)) return !table_in(path, "series").empty();
  if (!is_file(path)) return false;
  if (is_csv(path)) return table_name(path) == "series";
  const fs::path extension = fs::path(path).extension();
  try {
    if (extension == ".json") return !is_node_link(path);
    if (extension != ".npz") return false;
    const io::Npz npz = io::Npz::open(path);
    const bool is_other = npz.has("node_ptr") || npz.has("node_features") || has_pyg_names(npz, {});
    return !is_other && (npz.has("x") || npz.has("values") || npz.has("speed"));
  } catch (const base::Error&) {
    return false;  // load() says what is wrong
  }
}

bool is_name(const std::string& name_or_path) {
  return find_dataset(name_or_path) != nullptr || is_builtin(name_or_path);
}

bool is_present(const DatasetInfo& info, const LoadOptions& options) {
  const std::vector<fs::path> folders = data_folders(options);
  if (is_complete(locate(info.files, folders))) return true;
  return is_complete(locate(info.alternatives, folders));
}

std::vector<InputFile> input_files(const std::string& name_or_path, const LoadOptions& options) {
  std::vector<fs::path> paths;
  if (const DatasetInfo* info = find_dataset(name_or_path)) {
    paths = paths_of(*info, options);
  } else if (is_partition(name_or_path)) {
    paths = {partition_index_path(name_or_path)};  // has the fingerprints of the parts
  } else if (is_file(name_or_path) || is_folder(name_or_path)) {
    paths = paths_of(fs::path(name_or_path));
  }
  std::vector<InputFile> files;
  for (const fs::path& path : paths) {
    if (!is_file(path)) continue;  // load() says what is missing
    files.push_back({fs::weakly_canonical(path).string(), io::sha256_of_file(path)});
  }
  return files;
}

Dataset load(const std::string& name_or_path, const LoadOptions& options) {
  check_utf8(name_or_path);
  // Before they are read: a file that changes in between does not match its fingerprint later.
  std::vector<InputFile> files = input_files(name_or_path, options);
  for (const InputFile& file : files) check_utf8(file.path);
  Dataset dataset;
  if (const DatasetInfo* info = find_dataset(name_or_path)) {
    dataset = load_registered(*info, options);
  } else if (is_builtin(name_or_path)) {
    dataset = make_builtin(name_or_path, options.make_seed);
  } else if (is_partition(name_or_path)) {
    throw base::Error({.where = base::printable(name_or_path, 200),
                       .what = "is a graph in parts, which only mpssm train reads",
                       .hint = "the whole is " + read_partition_index(name_or_path).source});
  } else if (is_file(name_or_path) || is_folder(name_or_path)) {
    dataset = read_path(name_or_path, options);
    dataset.name = name_of(name_or_path);
  } else {
    fail_unknown(name_or_path);
  }
  dataset.files = std::move(files);
  dataset.is_new = options.columns != nullptr;
  if (!dataset.is_new) refuse_unused(name_or_path, options, dataset);
  return dataset;
}

}  // namespace mpssm::data
