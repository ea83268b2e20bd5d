// How far a long command is, on standard error: a bar that moves where somebody watches, a line now
// and then where it goes to a file.
#pragma once

#include <chrono>
#include <string>

namespace sap::client {

class Progress {
 public:
  // total: what there is to do, in the unit the lines show, as in 2 and "s".
  Progress(std::string name, double total, std::string unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(double done);

  // Makes room for a line of output of another kind.
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
