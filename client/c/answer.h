// What a call of the C interface returns: the arrays of the solver, and structs that point to them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/c/sap_islands.h"
#include "solver/engine/engine_error.h"
#include "solver/island_forecast.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/derivatives.h"
#include "solver/problem/input_differential.h"
#include "solver/problem/input_selection.h"

namespace sap::c {

// The structs of one gradient.
struct GradientStructs {
  InputDifferential inputs;
  std::vector<double> applied_impulse;
  std::vector<double> delassus_estimate;
  sap_trees trees;
  sap_bodies bodies;
  sap_hunt_crossley contact_hunt_crossley;
  sap_contact_laws contact_laws;
  sap_contacts contacts;
  sap_hunt_crossley body_contact_hunt_crossley;
  sap_contact_laws body_contact_laws;
  sap_body_contacts body_contacts;
  sap_rows rows;
  sap_regularization regularization;
  sap_problem problem;
  sap_gradient gradient;
};

}  // namespace sap::c

struct sap_answer {
  // Arrays of the solver, to be filled before Set*.
  sap::ContactSolution solution;
  sap::Derivatives derivatives;
  sap::IslandForecast forecast;

  sap_answer() { Clear(); }
  sap_answer(const sap_answer&) = delete;
  sap_answer& operator=(const sap_answer&) = delete;

  // Each of the three begins anew.
  void SetError(sap::EngineError error);
  void SetForecast();
  void SetSolution(double check_s, bool warm_started);
  // After SetSolution; `view` is that of the problem that was differentiated.
  void SetDerivatives(const sap::ContactProblemView& view, const sap::ContactProblem& problem,
                      const sap::InputSelection& wanted);

  const sap_error* error() const { return &error_struct_; }
  const sap_solution* solution_struct() const { return solved_ ? &solution_struct_ : nullptr; }
  const sap_derivatives* derivatives_struct() const {
    return differentiated_ ? &derivatives_struct_ : nullptr;
  }
  const sap_forecast* forecast_struct() const {
    return forecast_found_ ? &forecast_struct_ : nullptr;
  }

 private:
  void Clear();
  void SetIslands();

  sap::EngineError error_;
  sap_error error_struct_{};

  bool solved_{false};
  sap_solution solution_struct_{};
  sap_islands islands_struct_{};
  std::vector<int32_t> status_;
  std::vector<uint32_t> iterations_, factorizations_, dofs_, contacts_, rows_, swept_;
  std::vector<double> momentum_residual_, optimality_gap_bound_, solve_time_s_, cost_;

  bool forecast_found_{false};
  sap_forecast forecast_struct_{};

  bool differentiated_{false};
  sap_derivatives derivatives_struct_{};
  std::vector<std::unique_ptr<sap::c::GradientStructs>> gradients_;
  std::vector<const sap_gradient*> gradient_list_;
  std::vector<sap_tangent> tangents_;
  std::vector<const sap_tangent*> tangent_list_;
  std::vector<int32_t> adjoint_status_;
};
