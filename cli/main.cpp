// SPDX-License-Identifier: MIT
// mpssm: train, evaluate, use and analyse message-passing state-space models from a command line.
// launch.cpp loads this and calls mpssm_main().
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fmt/core.h>
#include <malloc.h>
#include <string>
#include <vector>

#include "mpssm/base/printable.h"
#include "mpssm/base/utf8.h"
#include "mpssm/version.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace {

constexpr const char* kExamples = R"(
Examples:
  mpssm data list                          datasets known by name
  mpssm train board                        learn to find the mines of a built-in board
  mpssm train myfolder/ --out runs/mine    own graph: edges.csv and nodes.csv
  mpssm predict runs/mine                  probabilities for every node, as CSV
  mpssm tune myfolder/ --grid model.blocks=2,4,8
  mpssm sensitivity runs/mine --target 17  what the prediction of node 17 depends on
  mpssm advise edges.csv --rewire 3        edges that help the worst pair most
  mpssm report runs/a runs/b               runs as a page to look at
  mpssm reproduce --list                   the paper's experiments, and what is recorded

`mpssm help VERB` explains a verb; `mpssm completion bash` teaches them to a shell.)";

/// The first line: torch adds the stack of its own functions below it.
std::string first_line(const char* message) {
  const std::string text(message);
  return text.substr(0, text.find('\n'));
}

/// What is missing is often only missing because another word stands in its place.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  constexpr std::size_t kMaxLength = 400;
  const std::vector<std::string> rest = app.remaining(/*recurse=*/true);
  const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const std::string unknown = is_missing && !rest.empty() ? "unknown '" + rest[0] + "'; " : "";
  return mpssm::base::printable(unknown + error.what(), kMaxLength);
}

int run(int argc, char** argv) {
  CLI::App app("Message-passing state-space models on graphs", "mpssm");
  app.footer(kExamples);
  app.set_version_flag("--version", fmt::format("mpssm {}", mpssm::kVersion));
  app.require_subcommand(1);
  mpssm::cli::Action action;
  mpssm::cli::add_data(app, action);
  mpssm::cli::add_train(app, action);
  mpssm::cli::add_evaluate(app, action);
  mpssm::cli::add_predict(app, action);
  mpssm::cli::add_convert(app, action);
  mpssm::cli::add_tune(app, action);
  mpssm::cli::add_plan(app, action);
  mpssm::cli::add_sensitivity(app, action);
  mpssm::cli::add_advise(app, action);
  mpssm::cli::add_reproduce(app, action);
  mpssm::cli::add_report(app, action);
  mpssm::cli::add_show(app, action);
  mpssm::cli::add_help(app, action);
  // Paths and names go into records and models, which are UTF-8: said now, not after the work.
  for (int i = 1; i < argc; ++i) {
    if (mpssm::base::is_utf8(argv[i])) continue;
    mpssm::cli::say("mpssm: expected arguments in UTF-8, got '" + mpssm::base::printable(argv[i]) +
                    "'; rename the file or folder");
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    mpssm::cli::say("mpssm: " + usage_message(app, error) + " (mpssm --help)");
    return 2;
  }
  return action();
}

/// A training step frees and takes the same tensors again: keep their pages instead of giving them
/// back to the system each time.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kMib = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMib);
  mallopt(M_TRIM_THRESHOLD, 2047 * kMib);
  mallopt(M_TOP_PAD, 64 * kMib);
#endif
}

}  // namespace

extern "C" int mpssm_main(int argc, char** argv) {
  keep_freed_memory();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit is an error like any other
  try {
    const int code = run(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      mpssm::cli::say("mpssm: cannot write to stdout");
      return mpssm::cli::kFailed;
    }
    return code;
  } catch (const std::bad_alloc&) {
    mpssm::cli::say("mpssm: out of memory");
  } catch (const std::filesystem::filesystem_error& error) {
    mpssm::cli::say("mpssm: " + error.path1().string() +
                    ": cannot be looked at: " + error.code().message());
  } catch (const std::exception& error) {
    const std::string line = first_line(error.what());
    // torch's own words for it name a line of its source.
    const bool out_of_memory = line.find("can't allocate memory") != std::string::npos;
    mpssm::cli::say("mpssm: " + (out_of_memory ? "out of memory" : line));
  }
  return mpssm::cli::kFailed;
}
