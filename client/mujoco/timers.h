// MuJoCo's timers in mjData. Their clock is the callback mjcb_time of the program; without one
// durations are 0, and the numbers count.
#pragma once

#include <cstdint>
#include <span>

namespace sap::mujoco {

// mjTimerStat.
struct Timer {
  double duration;
  int32_t number;
};

inline Timer* TimerAt(std::span<uint8_t> timers, int kind) {
  return reinterpret_cast<Timer*>(timers.data()) + kind;
}

inline void AddToTimer(std::span<uint8_t> timers, int kind, double duration) {
  Timer* timer = TimerAt(timers, kind);
  timer->duration += duration;
  ++timer->number;
}

}  // namespace sap::mujoco
