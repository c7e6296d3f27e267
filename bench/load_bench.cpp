// SPDX-License-Identifier: MIT
// Loading of a large graph from tables and from arrays: time and memory over what is loaded, each
// call in a process that does nothing else. Beside it the plain reading of the same files.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fmt/core.h>
#include <fnmatch.h>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <variant>
#include <vector>
#include <zlib.h>

#include "mpssm/base/measure.h"
#include "mpssm/data/load.h"
#include "mpssm/graph/gso.h"
#include "mpssm/io/file.h"
#include "mpssm/io/npz.h"

namespace mpssm::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kMiB = 1024.0 * 1024.0;
constexpr std::int64_t kFeatures = 4;

struct Settings {
  std::string json_file;
  std::string only = "*";
  std::string folder;  // of the files; empty: a new one, removed at the end
  std::string one;     // with `only`: make this one call and print its figures
  bool quick = false;
  int rounds = 3;

  std::int64_t num_nodes() const { return quick ? 20'000 : 1'000'000; }
  std::int64_t num_edges() const { return 10 * num_nodes(); }
};

struct Edges {
  std::vector<std::int64_t> src;
  std::vector<std::int64_t> dst;
};

Edges random_edges(const Settings& settings) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> node(0, settings.num_nodes() - 1);
  Edges edges;
  for (std::int64_t e = 0; e < settings.num_edges(); ++e) {
    edges.src.push_back(node(random));
    edges.dst.push_back(node(random));
  }
  return edges;
}

// --- the files of a case -------------------------------------------------------------------------

using NameOf = std::function<std::string(std::int64_t node)>;

void write_tables(const fs::path& folder, const Settings& settings, const NameOf& name_of,
                  bool weighted) {
  const Edges edges = random_edges(settings);
  fs::create_directories(folder);
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> value(-1.0, 1.0);
  io::write_file(folder / "nodes.csv", [&](const io::Sink& sink) {
    sink("id,x0,x1,x2,x3,label\n");
    for (std::int64_t i = 0; i < settings.num_nodes(); ++i) {
      sink(fmt::format("{},{:.5f},{:.5f},{:.5f},{:.5f},{}\n", name_of(i), value(random),
                       value(random), value(random), value(random), i % 5));
    }
  });
  io::write_file(folder / "edges.csv", [&](const io::Sink& sink) {
    sink(weighted ? "src,dst,weight\n" : "src,dst\n");
    for (std::size_t e = 0; e < edges.src.size(); ++e) {
      // The lower first: an edge listed both ways would need one weight.
      const auto [low, high] = std::minmax(edges.src[e], edges.dst[e]);
      sink(name_of(low) + "," + name_of(high));
      sink(weighted ? fmt::format(",{:.4f}\n", 1.5 + value(random)) : "\n");
    }
  });
}

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string npy_header(const io::Array& array) {
  const std::map<io::DType, const char*> codes = {
      {io::DType::kInt64, "<i8"}, {io::DType::kFloat32, "<f4"}, {io::DType::kUInt8, "|u1"}};
  std::string shape;
  for (const std::int64_t size : array.shape) shape += fmt::format("{}, ", size);
  const std::string text = fmt::format(
      "{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}\n", codes.at(array.dtype), shape);
  std::string header("\x93NUMPY\1\0", 8);
  append(header, static_cast<std::uint16_t>(text.size()));
  return header + text;
}

// As numpy.savez does; write_npz() would deflate.
void write_stored_npz(const fs::path& path, const std::map<std::string, io::Array>& arrays) {
  io::write_file(path, [&](const io::Sink& sink) {
    std::string directory;
    std::uint32_t offset = 0;
    for (const auto& [name, array] : arrays) {
      const std::string header = npy_header(array);
      const std::string file = name + ".npy";
      const auto size = static_cast<std::uint32_t>(header.size() + array.bytes.size());
      uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(header.data()), header.size());
      crc = crc32_z(crc, reinterpret_cast<const Bytef*>(array.bytes.data()), array.bytes.size());
      std::string record(6, '\0');  // flags, method, time, date
      record.append(2, '\0');
      append(record, static_cast<std::uint32_t>(crc));
      append(record, size);
      append(record, size);
      append(record, static_cast<std::uint16_t>(file.size()));
      append(record, std::uint16_t{0});
      const std::string local = std::string("PK\3\4\x14\0", 6) + record + file;
      directory += std::string("PK\1\2\x14\0\x14\0", 8) + record + std::string(10, '\0');
      append(directory, offset);
      directory += file;
      offset += static_cast<std::uint32_t>(local.size()) + size;
      sink(local);
      sink(header);
      sink({reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()});
    }
    std::string end("PK\5\6\0\0\0\0", 8);
    append(end, static_cast<std::uint16_t>(arrays.size()));
    append(end, static_cast<std::uint16_t>(arrays.size()));
    append(end, static_cast<std::uint32_t>(directory.size()));
    append(end, offset);
    end.append(2, '\0');
    sink(directory + end);
  });
}

template <typename T>
io::Array array_of(const std::vector<T>& values, std::vector<std::int64_t> shape) {
  return io::make_array(std::span<const T>(values), std::move(shape));
}

// Ends of an edge side by side ('edges'), or all sources first ('edge_index').
std::map<std::string, io::Array> make_arrays(const Settings& settings, bool as_pairs) {
  const Edges edges = random_edges(settings);
  const std::size_t count = edges.src.size();
  std::vector<std::int64_t> ends(2 * count);
  for (std::size_t e = 0; e < count; ++e) {
    ends[as_pairs ? 2 * e : e] = edges.src[e];
    ends[as_pairs ? 2 * e + 1 : count + e] = edges.dst[e];
  }
  const std::int64_t nodes = settings.num_nodes();
  std::vector<float> features;
  std::mt19937_64 random(2);
  std::uniform_real_distribution<float> value(-1.0f, 1.0f);
  for (std::int64_t i = 0; i < nodes * kFeatures; ++i) features.push_back(value(random));
  std::vector<std::int64_t> labels;
  std::map<std::string, io::Array> arrays;
  for (std::int64_t i = 0; i < nodes; ++i) labels.push_back(i % 5);
  const std::array<const char*, 3> masks = {"train_masks", "val_masks", "test_masks"};
  for (std::size_t part = 0; part < masks.size(); ++part) {
    std::vector<std::uint8_t> mask;
    for (std::int64_t i = 0; i < nodes; ++i) mask.push_back(i / 5 % 3 == std::int64_t(part));
    arrays[masks[part]] = array_of(mask, {1, nodes});
  }
  const auto num_edges = static_cast<std::int64_t>(count);
  arrays["node_features"] = array_of(features, {nodes, kFeatures});
  arrays["node_labels"] = array_of(labels, {nodes});
  if (as_pairs) {
    arrays["edges"] = array_of(ends, {num_edges, 2});
  } else {
    arrays["edge_index"] = array_of(ends, {2, num_edges});
  }
  return arrays;
}

struct Case {
  std::string name;
  std::string file;  // or folder, for load()
  std::function<void(const fs::path&)> write;
};

std::vector<Case> make_cases(const Settings& settings) {
  const NameOf number = [](std::int64_t node) { return std::to_string(node); };
  const NameOf word = [](std::int64_t node) { return fmt::format("user_{:x}", node * 2654435761); };
  return {
      {"csv", "numbers",
       [=](const fs::path& path) { write_tables(path, settings, number, false); }},
      {"csv-weighted", "weighted",
       [=](const fs::path& path) { write_tables(path, settings, number, true); }},
      {"csv-names", "names",
       [=](const fs::path& path) { write_tables(path, settings, word, false); }},
      {"npz-stored", "stored.npz",
       [=](const fs::path& path) { write_stored_npz(path, make_arrays(settings, true)); }},
      {"npz-deflated", "deflated.npz",
       [=](const fs::path& path) { io::write_npz(path, make_arrays(settings, false)); }},
  };
}

std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  return {path / "nodes.csv", path / "edges.csv"};
}

// --- one call ------------------------------------------------------------------------------------

template <typename T>
double bytes_of(std::span<const T> values) {
  return static_cast<double>(values.size_bytes());
}

double bytes_of(const graph::Graph& graph) {
  return bytes_of(graph.row_ptr()) + bytes_of(graph.col()) + bytes_of(graph.weight());
}

double bytes_of(const graph::Gso& gso) {
  const graph::GsoArrays& own = gso.arrays();
  return bytes_of(own.row_ptr) + bytes_of(own.col) + bytes_of(own.value) +
         bytes_of(own.value_float) + bytes_of(own.transposed_row_ptr) +
         bytes_of(own.transposed_col) + bytes_of(own.transposed_value) +
         bytes_of(own.transposed_value_float);
}

double bytes_of(const data::NodeData& data) {
  const std::string short_text;
  double bytes = bytes_of(data.graph) + bytes_of(std::span(data.features.values)) +
                 bytes_of(std::span(data.target));
  for (const auto& split : data.splits) bytes += bytes_of(std::span(split));
  for (const std::string& id : data.node_ids) {
    const bool is_inside = id.capacity() <= short_text.capacity();
    bytes += static_cast<double>(sizeof id + (is_inside ? 0 : id.capacity() + 1));
  }
  return bytes;
}

// What a call leaves behind, and how large that is.
struct Loaded {
  std::optional<data::Dataset> dataset;
  std::optional<graph::Gso> gso;

  double bytes() const {
    const double own = dataset ? bytes_of(std::get<data::NodeData>(dataset->content)) : 0.0;
    return own + (gso ? bytes_of(*gso) : 0.0);
  }
};

struct Way {
  std::string name;
  std::function<void(const fs::path&, Loaded&)> run;
};

std::vector<Way> ways() {
  return {
      {"mpssm load",
       [](const fs::path& path, Loaded& loaded) { loaded.dataset = data::load(path); }},
      {"mpssm load and gso",
       [](const fs::path& path, Loaded& loaded) {
         loaded.dataset = data::load(path);
         loaded.gso = make_gso(std::get<data::NodeData>(loaded.dataset->content).graph);
       }},
      {"fingerprint", [](const fs::path& path, Loaded&) { data::input_files(path); }},
      {"read",
       [](const fs::path& path, Loaded&) {
         for (const fs::path& file : files_of(path)) io::read_pieces(file, [](std::string_view) {});
       }},
  };
}

double cpu_milliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

// Of one call in a process of its own.
struct Figures {
  double milliseconds = 0.0;
  double cpu_milliseconds = 0.0;
  double peak_mib = 0.0;
  double result_mib = 0.0;
};

Figures run_one(const Way& way, const fs::path& path) {
  Figures figures;
  Loaded loaded;
  figures.peak_mib = base::peak_of([&] {
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = cpu_milliseconds();
    way.run(path, loaded);
    figures.cpu_milliseconds = cpu_milliseconds() - cpu_start;
    figures.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  });
  figures.result_mib = loaded.bytes() / kMiB;
  return figures;
}

// What this program, started anew, says of one call.
Figures run_elsewhere(const Case& of, const Way& way, const Settings& settings) {
  const std::string command =
      fmt::format("/proc/{}/exe{} --folder '{}' --only '{}' --one '{}'", getpid(),
                  settings.quick ? " --quick" : "", settings.folder, of.name, way.name);
  Figures figures;
  FILE* pipe = popen(command.c_str(), "r");
  const bool read = pipe != nullptr && std::fscanf(pipe, "%lf %lf %lf %lf", &figures.milliseconds,
                                                   &figures.cpu_milliseconds, &figures.peak_mib,
                                                   &figures.result_mib) == 4;
  if (pipe != nullptr) pclose(pipe);
  if (!read) throw std::runtime_error(fmt::format("{}, {}: nothing measured", of.name, way.name));
  return figures;
}

std::string machine() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) {
      return fmt::format("{}, {} cores", line.substr(line.find(": ") + 2),
                         std::thread::hardware_concurrency());
    }
  }
  return "unknown processor";
}

// Fastest of the rounds; memory is the same in each.
Figures best_of(std::vector<Figures> rounds) {
  return *std::min_element(rounds.begin(), rounds.end(), [](const Figures& a, const Figures& b) {
    return a.cpu_milliseconds < b.cpu_milliseconds;
  });
}

nlohmann::ordered_json run_case(const Case& of, const Settings& settings) {
  const fs::path path = fs::path(settings.folder) / of.file;
  if (!fs::exists(path)) of.write(path);
  double file_mb = 0.0;
  for (const fs::path& file : files_of(path)) {
    file_mb += static_cast<double>(fs::file_size(file)) / 1e6;
  }
  const double load_before = base::machine_load();
  const std::vector<Way> contenders = ways();
  std::vector<std::vector<Figures>> figures(contenders.size());
  for (int round = 0; round < settings.rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      figures[i].push_back(run_elsewhere(of, contenders[i], settings));
    }
  }
  auto rows = nlohmann::ordered_json::array();
  const Figures ours = best_of(figures.front());
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const Figures best = best_of(figures[i]);
    const double rate = file_mb / best.cpu_milliseconds * 1e3;
    const double ratio = best.cpu_milliseconds / ours.cpu_milliseconds;
    std::printf("%-14s %-20s %10.0f %10.0f %8.2f %8.1f %8.1f %10.1f %10.1f\n", of.name.c_str(),
                contenders[i].name.c_str(), best.milliseconds, best.cpu_milliseconds, ratio,
                file_mb, rate, best.peak_mib, best.result_mib);
    std::fflush(stdout);
    rows.push_back(
        {{"case", of.name},
         {"contender", contenders[i].name},
         {"milliseconds", best.milliseconds},
         {"cpu_milliseconds", best.cpu_milliseconds},
         {"ratio", ratio},
         {"peak_mib", best.peak_mib},
         {"result_mib", best.result_mib},
         {"file_mb", file_mb},
         {"mb_per_cpu_second", rate},
         {"size", fmt::format("{} nodes, {} edges", settings.num_nodes(), settings.num_edges())},
         {"rounds", settings.rounds},
         {"load", {load_before, base::machine_load()}},
         {"machine", machine()}});
  }
  return rows;
}

// --- the program ---------------------------------------------------------------------------------

constexpr const char* kUsage =
    "usage: load_bench [--quick] [--rounds N] [--only PATTERN] [--folder DIR] [--json FILE]\n"
    "Loads 10 million edges from tables and arrays. --quick: 200,000 edges. --folder keeps the\n"
    "files there for the next time.\n";

Settings parse(int count, char** words) {
  Settings settings;
  const std::vector<std::string> args(words + 1, words + count);
  for (std::size_t i = 0; i < args.size(); ++i) {
    const auto value = [&] {
      return ++i < args.size() ? args[i] : throw std::invalid_argument("");
    };
    if (args[i] == "--quick") {
      settings.quick = true;
    } else if (args[i] == "--rounds") {
      settings.rounds = std::max(1, std::stoi(value()));
    } else if (args[i] == "--only") {
      settings.only = value();
    } else if (args[i] == "--folder") {
      settings.folder = value();
    } else if (args[i] == "--json") {
      settings.json_file = value();
    } else if (args[i] == "--one") {
      settings.one = value();
    } else {
      throw std::invalid_argument(args[i]);
    }
  }
  return settings;
}

void print_one(const Settings& settings) {
  for (const Case& of : make_cases(settings)) {
    for (const Way& way : ways()) {
      if (of.name != settings.only || way.name != settings.one) continue;
      const Figures figures = run_one(way, fs::path(settings.folder) / of.file);
      std::printf("%.3f %.3f %.3f %.3f\n", figures.milliseconds, figures.cpu_milliseconds,
                  figures.peak_mib, figures.result_mib);
    }
  }
}

void run_all(Settings settings) {
  const bool is_new = settings.folder.empty();
  if (is_new) {
    std::string name = (fs::temp_directory_path() / "mpssm-load-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
    settings.folder = name;
  }
  fs::create_directories(settings.folder);
  std::printf("%s, load: %.2f\n", machine().c_str(), base::machine_load());
  std::printf("%-14s %-20s %10s %10s %8s %8s %8s %10s %10s\n", "case", "contender", "ms", "cpu ms",
              "ratio", "file MB", "MB/s", "peak MiB", "result MiB");
  auto rows = nlohmann::ordered_json::array();
  for (const Case& of : make_cases(settings)) {
    if (fnmatch(settings.only.c_str(), of.name.c_str(), 0) != 0) continue;
    for (auto& row : run_case(of, settings)) rows.push_back(std::move(row));
  }
  if (is_new) fs::remove_all(settings.folder);
  if (!settings.json_file.empty()) io::write_file(settings.json_file, rows.dump(1) + "\n");
}

}  // namespace
}  // namespace mpssm::bench

int main(int count, char** words) {
  using namespace mpssm::bench;
  Settings settings;
  try {
    settings = parse(count, words);
  } catch (const std::exception&) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    if (settings.one.empty()) {
      run_all(settings);
    } else {
      print_one(settings);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "load_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
