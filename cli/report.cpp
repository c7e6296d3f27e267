// SPDX-License-Identifier: MIT
// mpssm report, mpssm show
#include <memory>

#include "mpssm/io/file.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/run/run_report.h"

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace mpssm::cli {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string out;
  std::filesystem::path data_dir;
};

constexpr const char* kReportFooter = R"(
Examples:
  mpssm report runs/mine                        the page of one run, again: runs/mine/report.html
  mpssm report runs/a runs/b --out both.html    side by side
  mpssm report runs/seeds                       all runs below: mean, interval, curves

The page is one file that needs no other and no network.)";

int write_report(const ReportOptions& options) {
  ops::set_process_threads(0);
  const auto runs = run::finished_runs(options.runs);
  const std::filesystem::path out =
      !options.out.empty() ? std::filesystem::path(options.out)
                           : run::report_path(options.runs.size() == 1 ? options.runs[0] : "");
  io::check_replaceable(out, {.bytes = report::page_start(), .kind = "a report of mpssm"});
  io::write_file(out, run::report_html(runs, options.data_dir));
  print(out.string());
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* verb = app.add_subcommand("report", "Runs as a page to look at, one or several");
  verb->add_option("runs", options->runs, "run folders, or folders of several")->required();
  verb->add_option("--out", options->out, "file to write (default: report.html in the folder)");
  verb->add_option("--data-dir", options->data_dir, "folder to look for registered files first");
  verb->footer(kReportFooter);
  verb->callback([options, &action] { action = [options] { return write_report(*options); }; });
}

void add_show(CLI::App& app, Action& action) {
  auto folder = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("show", "The record of a run as a page of text");
  verb->add_option("run", *folder, "run folder")->required();
  verb->callback([folder, &action] {
    action = [folder] {
      print(report::to_text(run::read_folder(*folder)));
      return 0;
    };
  });
}

}  // namespace mpssm::cli
