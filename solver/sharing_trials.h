// Whether an island is solved faster by several threads or by one, by trials.
//
// Loops of an island of some milliseconds gain by being shared where cores are idle and near each
// other, and lose up to half where their caches are far apart, or where other processes use them.
// No system tells which, and both change while a solver lives. So the time per unit of work is kept
// for both ways, for islands of about one size, and the faster way is taken. The other is tried
// when some solves have been timed, and again when the loss of a trial is a five-hundredth of the
// time since. No trial if it could miss the deadline.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

namespace sap {

// Belongs to one solver. Not thread-safe.
class SharingTrials {
 public:
  // Largest islands that are tried [flop per iteration]: larger ones gained wherever they were
  // measured, and one solve by one thread would delay its caller by tens of milliseconds.
  static constexpr double kMostFlops = 1e8;

  // Whether several threads are to solve an island of so much work per iteration. time_left_s is
  // the time until its answer is due.
  bool Shares(double flops, double time_left_s) {
    if (flops > kMostFlops) return true;
    Size& size = SizeOf(flops);
    const bool faster = size.Faster();
    if (!size.IsTrialDue() || size.TimeOfTrial() > kPartOfTimeLeft * time_left_s) return faster;
    size.since_trial_s = 0;
    return !faster;
  }

  // An island took so long, by several threads or by one.
  void Took(double flops, bool shared, int iterations, double seconds) {
    if (flops > kMostFlops || iterations == 0) return;
    Size& size = SizeOf(flops);
    const double rate = seconds / (flops * iterations);
    double& known = size.rate[shared ? kShared : kAlone];
    // A way that is seldom tried has to be believed sooner.
    const double weight = known == 0 ? 1 : shared == size.Faster() ? 0.125 : 0.5;
    known += weight * (rate - known);
    size.last_s = seconds;
    size.since_trial_s += seconds;
    size.solves = std::min(size.solves + 1, kSolvesBeforeTrial);
  }

 private:
  enum { kAlone, kShared };
  static constexpr int kSolvesBeforeTrial = 10;
  static constexpr double kPartOfTime = 1.0 / 500;
  static constexpr double kPartOfTimeLeft = 0.25;
  // A trial is taken to lose so much of its time at least.
  static constexpr double kLeastLoss = 0.1;
  // Assumed ratio of the time of one thread to that of several, until it is known.
  static constexpr double kUnknownRatio = 2;

  // Islands within a factor of two.
  struct Size {
    std::array<double, 2> rate{};  // seconds per flop of an iteration; 0: not known
    double last_s{0};
    double since_trial_s{0};
    int solves{0};

    bool Faster() const { return rate[kAlone] == 0 || rate[kShared] < rate[kAlone]; }
    double TimeOfTrial() const {
      if (rate[kAlone] == 0) return last_s * kUnknownRatio;
      return last_s * (Faster() ? rate[kAlone] / rate[kShared] : rate[kShared] / rate[kAlone]);
    }
    bool IsTrialDue() const {
      if (rate[kAlone] == 0) return solves == kSolvesBeforeTrial;
      return std::max(TimeOfTrial() - last_s, kLeastLoss * last_s) <= kPartOfTime * since_trial_s;
    }
  };

  Size& SizeOf(double flops) {
    return sizes_[std::clamp(std::ilogb(flops / kMostFlops) + kSizes - 1, 0, kSizes - 1)];
  }

  static constexpr int kSizes = 8;
  std::array<Size, kSizes> sizes_{};
};

}  // namespace sap
