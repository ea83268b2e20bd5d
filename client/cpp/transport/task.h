// A coroutine that another coroutine awaits. Internal.
//
//   Task<bool> Session::Close() { ... co_return true; }
//   const bool closed = co_await Close();
//
// It begins when it is awaited, or with Start, and runs until it waits for an event (event_loop.h),
// whose arrival resumes it. So the steps of a call stand in their order, and no thread waits.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace sap::client {

template <typename Value>
class [[nodiscard]] Task {
 public:
  struct promise_type;  // the name that the language asks for
  using Handle = std::coroutine_handle<promise_type>;

  // Resumes the coroutine that awaits this one.
  struct AtEnd {
    bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle ended) noexcept {
      const std::coroutine_handle<> awaiting = ended.promise().awaiting;
      return awaiting ? awaiting : std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };

  struct promise_type {
    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    AtEnd final_suspend() noexcept { return {}; }
    void return_value(Value returned) { value.emplace(std::move(returned)); }
    void unhandled_exception() { exception = std::current_exception(); }

    std::coroutine_handle<> awaiting{};
    std::optional<Value> value{};
    std::exception_ptr exception{};
  };

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  // Begins a task that no coroutine awaits.
  void Start() { handle_.resume(); }
  bool done() const { return handle_.done(); }
  // Once it is done.
  Value Result() {
    if (handle_.promise().exception) std::rethrow_exception(handle_.promise().exception);
    return std::move(*handle_.promise().value);
  }

  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) {
    handle_.promise().awaiting = awaiting;
    return handle_;
  }
  Value await_resume() { return Result(); }

 private:
  explicit Task(Handle handle) : handle_(handle) {}

  Handle handle_;
};

}  // namespace sap::client
