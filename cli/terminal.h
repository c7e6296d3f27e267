// SPDX-License-Identifier: MIT
// What the program says: talk on stderr, data on stdout, a progress line on a terminal.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "mpssm/base/error.h"
#include "mpssm/report/progress_text.h"
#include "mpssm/report/text.h"
#include "mpssm/train/trainer.h"

namespace mpssm::cli {

/// A line or more on stderr. On a terminal "note:", "mpssm:" and the like have a colour, unless
/// NO_COLOR is set.
void say(std::string_view line);
/// The same on stdout; the first line of a table is bold on a terminal.
void print(std::string_view line);
/// From now on, if `json`, what is printed goes to stderr: stdout is for print_json() alone.
void only_json_on_stdout(bool json);
void print_json(std::string_view line);

using base::refuse_if;
using report::duration;
using report::table;

/// One line that is rewritten on a terminal, else lines below each other.
class StatusLine {
 public:
  StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine();
  bool is_terminal() const { return is_terminal_; }
  double seconds_since_last() const;
  report::TerminalStyle style()
      const;                    ///< of a terminal: its width, colours unless NO_COLOR is set
  void show(std::string line);  ///< cut to the width unless it says that it fits
  void show_fitting(const std::string& line);
  void finish();  ///< leaves the line

 private:
  bool is_terminal_;
  bool has_line_ = false;
  std::chrono::steady_clock::time_point last_ = {};
};

/// Follows a training run.
class ProgressLine {
 public:
  ProgressLine(std::string metric, bool quiet);
  void update(const train::Progress& progress);
  void finish() { line_.finish(); }

 private:
  std::string metric_;
  bool quiet_;
  std::vector<double> values_;
  StatusLine line_;
};

/// Follows any other long work; silent if it takes less than two seconds.
class Meter {
 public:
  explicit Meter(std::string what) : what_(std::move(what)) {}
  void update(double share_done);

 private:
  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  StatusLine line_;
};

/// A Meter as a function that is told the share done.
std::function<void(double)> follow(const std::string& what);

/// From now on Ctrl-C, SIGTERM and SIGHUP ask for a stop instead of ending the program, which is
/// said at once; a second one ends it.
void catch_interrupts();
bool was_interrupted();

}  // namespace mpssm::cli
