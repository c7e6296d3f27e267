// SPDX-License-Identifier: MIT
#include "cli/terminal.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fmt/core.h>
#include <memory>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

#include "mpssm/task/metrics.h"

namespace mpssm::cli {
namespace {

volatile std::sig_atomic_t interrupts = 0;
bool json_only = false;

void write_line(std::FILE* file, std::string_view line) {
  std::fprintf(file, "%.*s\n", static_cast<int>(line.size()), line.data());
}

/// See no-color.org.
bool has_colours(int file) {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(file) == 1 && (refused == nullptr || *refused == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

extern "C" void on_interrupt(int signal) {
  interrupts = interrupts + 1;
  std::signal(signal, SIG_DFL);
  // At once, since a step may take minutes; only write() is allowed in here.
  constexpr std::string_view kText =
      "\nmpssm: will save and stop after this step; a second signal stops at once\n";
  [[maybe_unused]] const ssize_t count = write(STDERR_FILENO, kText.data(), kText.size());
}

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

void say(std::string_view line) {
  write_line(stderr, has_colours(STDERR_FILENO) ? report::coloured(line) : std::string(line));
}

void print(std::string_view line) {
  if (json_only) return say(line);
  write_line(stdout, has_colours(STDOUT_FILENO) ? report::coloured(line) : std::string(line));
}

void only_json_on_stdout(bool json) { json_only = json; }

void print_json(std::string_view line) { write_line(stdout, line); }

StatusLine::StatusLine() : is_terminal_(isatty(STDERR_FILENO) == 1) {}

StatusLine::~StatusLine() { finish(); }

double StatusLine::seconds_since_last() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - last_).count();
}

report::TerminalStyle StatusLine::style() const {
  return is_terminal_ ? report::terminal_style(terminal_width())
                      : report::TerminalStyle{.width = 0};
}

void StatusLine::show(std::string line) {
  if (is_terminal_ && line.size() >= terminal_width()) line.resize(terminal_width() - 1);
  show_fitting(line);
}

void StatusLine::show_fitting(const std::string& line) {
  last_ = std::chrono::steady_clock::now();
  if (!is_terminal_) {
    say(line);
    return;
  }
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  has_line_ = true;
}

void StatusLine::finish() {
  if (has_line_) std::fprintf(stderr, "\n");
  has_line_ = false;
}

ProgressLine::ProgressLine(std::string metric, bool quiet)
    : metric_(std::move(metric)), quiet_(quiet) {}

void ProgressLine::update(const train::Progress& progress) {
  if (progress.val != nullptr) values_.push_back(progress.val->at(metric_));
  if (quiet_) return;
  const double since = line_.seconds_since_last();
  const bool is_last = progress.step == progress.num_steps;
  if (!is_last && since < (line_.is_terminal() ? 0.1 : 5.0)) return;
  if (!line_.is_terminal() && progress.val == nullptr && since < 60.0) return;
  line_.show_fitting(report::progress_text({.step = progress.step,
                                            .num_steps = progress.num_steps,
                                            .loss = progress.loss,
                                            .metric = std::string(task::metric_info(metric_).title),
                                            .values = values_,
                                            .best = progress.best,
                                            .seconds = progress.seconds,
                                            .seconds_left = progress.seconds_left},
                                           line_.style()));
}

void Meter::update(double share_done) {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  constexpr double kSilent = 2.0;
  if (seconds < kSilent || line_.seconds_since_last() < (line_.is_terminal() ? 0.1 : 10.0)) return;
  line_.show(fmt::format("{}: {:.0f} %  {}, {} left", what_, 100.0 * share_done, duration(seconds),
                         duration(seconds * (1.0 - share_done) / share_done)));
}

std::function<void(double)> follow(const std::string& what) {
  return [meter = std::make_shared<Meter>(what)](double share) { meter->update(share); };
}

void catch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  // Not under nohup, which has it ignored.
  if (std::signal(SIGHUP, on_interrupt) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

bool was_interrupted() { return interrupts > 0; }

}  // namespace mpssm::cli
