// SPDX-License-Identifier: MIT
#include "cli/terminal.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <limits>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

#include "mpssm/train/metrics.h"

namespace mpssm::cli {
namespace {

volatile std::sig_atomic_t interrupts = 0;

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

/// Columns that the text takes: UTF-8 continuation bytes take none.
std::size_t width_of(std::string_view cell) {
  return static_cast<std::size_t>(
      std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool looks_like_number(std::string_view cell) {
  return !cell.empty() && cell.find_first_of("0123456789") != std::string_view::npos &&
         cell.find_first_not_of("0123456789.+-e±() %x") == std::string_view::npos;
}

}  // namespace

void say(std::string_view line) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

void print(std::string_view line) {
  std::fprintf(stdout, "%.*s\n", static_cast<int>(line.size()), line.data());
}

std::string text(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string result(static_cast<std::size_t>(std::max(length, 0)), '\0');
  std::vsnprintf(result.data(), result.size() + 1, format, again);
  va_end(again);
  return result;
}

std::string duration(double seconds) {
  if (seconds < 10.0) return text("%.1f s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) return text("%lld s", whole);
  if (whole < 3600) return text("%lld min %lld s", whole / 60, whole % 60);
  return text("%lld h %lld min", whole / 3600, whole / 60 % 60);
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], width_of(row[c]));
  }
  std::string result;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string fill(width[c] - width_of(row[c]), ' ');
      const bool right = looks_like_number(row[c]);
      line += (c > 0 ? "  " : "") + (right ? fill + row[c] : row[c] + fill);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  return result;
}

StatusLine::StatusLine() : is_terminal_(isatty(STDERR_FILENO) == 1) {}

StatusLine::~StatusLine() { finish(); }

double StatusLine::seconds_since_last() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - last_).count();
}

void StatusLine::show(std::string line) {
  last_ = std::chrono::steady_clock::now();
  if (!is_terminal_) {
    say(line);
    return;
  }
  if (line.size() >= terminal_width()) line.resize(terminal_width() - 1);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  has_line_ = true;
}

void StatusLine::finish() {
  if (has_line_) std::fprintf(stderr, "\n");
  has_line_ = false;
}

ProgressLine::ProgressLine(std::string metric, bool quiet)
    : metric_(std::move(metric)), quiet_(quiet), val_(std::numeric_limits<double>::quiet_NaN()) {}

void ProgressLine::update(const train::Progress& progress) {
  if (progress.val != nullptr) val_ = progress.val->at(metric_);
  if (quiet_) return;
  const double since = line_.seconds_since_last();
  const bool is_last = progress.step == progress.num_steps;
  if (!is_last && since < (line_.is_terminal() ? 0.1 : 5.0)) return;
  if (!line_.is_terminal() && progress.val == nullptr && since < 60.0) return;
  std::string line = text("step %lld/%lld  loss %.4f", static_cast<long long>(progress.step),
                          static_cast<long long>(progress.num_steps), progress.loss);
  if (!std::isnan(val_)) {
    line += text("  val %s %.4f  best %.4f", std::string(train::metric_info(metric_).title).c_str(),
                 val_, progress.best);
  }
  line += "  " + duration(progress.seconds);
  if (!is_last) line += ", " + duration(progress.seconds_left) + " left";
  line_.show(line);
}

void Meter::update(double share_done) {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  constexpr double kSilent = 2.0;
  if (seconds < kSilent || line_.seconds_since_last() < (line_.is_terminal() ? 0.1 : 10.0)) return;
  line_.show(what_ + text(": %.0f %%  ", 100.0 * share_done) + duration(seconds) + ", " +
             duration(seconds * (1.0 - share_done) / share_done) + " left");
}

void catch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  // Not under nohup, which has it ignored.
  if (std::signal(SIGHUP, on_interrupt) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

bool was_interrupted() { return interrupts > 0; }

}  // namespace mpssm::cli
