// SPDX-License-Identifier: MIT
// What the program says: talk on stderr, data on stdout, a progress line on a terminal.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/train/trainer.h"

namespace mpssm::cli {

/// One line on stderr.
void say(std::string_view line);
/// One line on stdout.
void print(std::string_view line);

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);

/// "12 s", "3 min 20 s", "2 h 5 min"
std::string duration(double seconds);

/// Columns aligned, first row is the header, numbers to the right.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// Follows a training run: one line that is rewritten on a terminal, else a line now and then.
class ProgressLine {
 public:
  ProgressLine(std::string metric, bool quiet);
  ~ProgressLine();
  void update(const train::Progress& progress);
  void finish();  ///< leaves the line

 private:
  std::string metric_;
  bool quiet_;
  bool is_terminal_;
  bool has_line_ = false;
  double val_;
  std::chrono::steady_clock::time_point last_ = {};
};

/// From now on Ctrl-C and SIGTERM ask for a stop instead of ending the program; a second one ends
/// it.
void catch_interrupts();
bool was_interrupted();

}  // namespace mpssm::cli
