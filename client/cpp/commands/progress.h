// Progress of a long command on standard error: a bar on a terminal, a line every 10 s elsewhere.
#pragma once

#include <chrono>
#include <string>

namespace sap::client {

class Progress {
 public:
  // total: amount of work in the printed unit, as in 2 and "s".
  Progress(std::string name, double total, std::string unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(double done);

  // Removes the bar, so that other output can be printed.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;

  const std::string name_;
  const double total_;
  const std::string unit_;
  const bool terminal_;
  const Clock::time_point start_{Clock::now()};
  Clock::time_point last_shown_{start_};
};

}  // namespace sap::client
