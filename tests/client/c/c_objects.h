// Objects of the C library that free themselves.
#pragma once

#include <memory>

#include "client/c/sap_islands.h"

namespace sap::test {

template <typename Object, void (*kFree)(Object*)>
struct Freed {
  void operator()(Object* object) const { kFree(object); }
};

template <typename Object, void (*kFree)(Object*)>
using Owned = std::unique_ptr<Object, Freed<Object, kFree>>;

class Solver {
 public:
  explicit Solver(int threads) : solver_(sap_solver_new(threads)) {}
  sap_solver* get() const { return solver_.get(); }

 private:
  Owned<sap_solver, sap_solver_free> solver_;
};

class Session {
 public:
  explicit Session(const Solver& solver) : session_(sap_session_new(solver.get())) {}
  sap_session* get() const { return session_.get(); }

 private:
  Owned<sap_session, sap_session_free> session_;
};

class Answer {
 public:
  Answer() : answer_(sap_answer_new()) {}
  sap_answer* get() const { return answer_.get(); }
  const sap_error& error() const { return *sap_answer_error(answer_.get()); }

 private:
  Owned<sap_answer, sap_answer_free> answer_;
};

}  // namespace sap::test
