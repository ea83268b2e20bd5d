#include "client/cpp/commands/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace sap::client {
namespace {

constexpr double kTerminalInterval_s = 0.1;
constexpr double kLineInterval_s = 10;
constexpr int kBarWidth = 30;

}  // namespace

Progress::Progress(std::string name, double total, std::string unit)
    : name_(std::move(name)),
      total_(total),
      unit_(std::move(unit)),
      terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { Clear(); }

void Progress::Show(double done) {
  const auto now = Clock::now();
  const double interval_s = std::chrono::duration<double>(now - last_shown_).count();
  if (interval_s < (terminal_ ? kTerminalInterval_s : kLineInterval_s)) return;
  last_shown_ = now;
  const double spent_s = std::chrono::duration<double>(now - start_).count();
  const double left_s = done > 0 ? spent_s * (total_ - done) / done : 0;
  if (!terminal_) {
    std::fprintf(stderr, "%s: %.2f of %.2f %s, about %.0f s left\n", name_.c_str(), done, total_,
                 unit_.c_str(), left_s);
    return;
  }
  const int filled = std::clamp(static_cast<int>(kBarWidth * done / total_), 0, kBarWidth);
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  std::fprintf(stderr, "\r\033[K%s [%s] %.2f of %.2f %s, about %.0f s left", name_.c_str(),
               bar.c_str(), done, total_, unit_.c_str(), left_s);
  std::fflush(stderr);
}

void Progress::Clear() {
  if (!terminal_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace sap::client
