#include "solver/newton/gauss_seidel.h"

#include <algorithm>
#include <atomic>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/newton/group_step.h"
#include "solver/newton/line_search.h"
#include "solver/pools/jacobian_kernels.h"

namespace sap {

namespace {

// By the impulses of the last evaluation, or of the steps of neighbors since.
bool HasKinkedConstraint(const IslandView& view, const TreeGroup& group, const SapData& data) {
  std::atomic<bool> kinked{false};
  ForConstraints(view, group, [&](auto pool, int begin, int end) {
    const auto& state = data.pools[pool];
    bool any = false;
    for (int i = begin; i < end; ++i) {
      any |= view.model.pools[pool].laws.IsKinked(i, state.v_c, state.gamma);
    }
    if (any) kinked.store(true, std::memory_order_relaxed);
  });
  return kinked.load(std::memory_order_relaxed);
}

// Calls body(contact, its group, its part that is the tree) for the friction contacts of a slot.
template <typename Body>
void ForContactsOf(const IslandView& view, int slot, Body&& body) {
  const ContactLayout& layout = view.layout(kFrictionPool);
  for (const ContactSide& side : layout.sides_of(slot)) {
    const ContactGroup& group = layout.groups()[side.group];
    for (int i = group.contact_begin; i < group.contact_end; ++i) {
      body(i, group, layout.parts()[side.part]);
    }
  }
}

// The friction contacts of one tree, four to a vector. Lanes without a contact are zero: open
// contacts, which add nothing.
struct ContactsOfTree {
  static constexpr int kMax = 64;
  static constexpr int kLanes = kNumLanes<double>;
  static constexpr int kMaxVectors = kMax / kLanes;

  int count{0};
  int number[kMax];       // in the pool
  const double* J[kMax];  // the block of the tree
  ConeParameters<Lanes4> parameters[kMaxVectors];
  ContactVector<Lanes4> v_c[kMaxVectors];
  ContactVector<Lanes4> dv_c[kMaxVectors];
  ContactVector<Lanes4> gamma[kMaxVectors];
  SymmetricMatrix3<Lanes4> G[kMaxVectors];

  int num_vectors() const { return (count + kLanes - 1) / kLanes; }
};

// Calls body(i, vector, lane) for every contact.
template <typename Body>
void ForContacts(const ContactsOfTree& contacts, Body&& body) {
  for (int i = 0; i < contacts.count; ++i) {
    body(i, i / ContactsOfTree::kLanes, i % ContactsOfTree::kLanes);
  }
}

int NumContacts(const IslandView& view, int slot) {
  const ContactLayout& layout = view.layout(kFrictionPool);
  int count = 0;
  for (const ContactSide& side : layout.sides_of(slot)) {
    count += layout.groups()[side.group].num_contacts();
  }
  return count;
}

void GatherContacts(const IslandView& view, int slot, const ContactVectors& v_c,
                    ContactsOfTree* contacts) {
  const auto& [laws, jacobians] = view.model.pools[kFrictionPool];
  int at = 0;
  ForContactsOf(view, slot,
                [&, &laws = laws, &jacobians = jacobians](int i, const ContactGroup& group,
                                                          const ContactPart& part) {
                  const int vector = at / ContactsOfTree::kLanes;
                  const int lane = at % ContactsOfTree::kLanes;
                  if (lane == 0) {
                    contacts->parameters[vector] = ConeParameters<Lanes4>{};
                    contacts->v_c[vector] = ContactVector<Lanes4>{};
                    contacts->dv_c[vector] = ContactVector<Lanes4>{};
                  }
                  contacts->number[at] = i;
                  contacts->J[at] = jacobians.of(group, i, part);
                  SetLane(laws.At(i, double{}), lane, &contacts->parameters[vector]);
                  SetLane(v_c.At(i), lane, &contacts->v_c[vector]);
                  ++at;
                });
  contacts->count = at;
}

// Impulses and G at v_c.
void EvaluateContacts(ContactsOfTree* contacts) {
  for (int k = 0; k < contacts->num_vectors(); ++k) {
    const ConeParameters<Lanes4>& parameters = contacts->parameters[k];
    const auto point = ProjectOnCone(parameters, contacts->v_c[k]);
    contacts->gamma[k] = point.gamma;
    contacts->G[k] = ConeHessian(parameters, point, point.t_hat_x, point.t_hat_y);
  }
}

// Derivatives of the cost along v_c + alpha dv_c at alpha.
LineSlope ContactsAlongLine(const ContactsOfTree& contacts, double alpha) {
  Lanes4 first{};
  Lanes4 second{};
  for (int k = 0; k < contacts.num_vectors(); ++k) {
    const ContactVector<Lanes4>& from = contacts.v_c[k];
    const ContactVector<Lanes4>& along = contacts.dv_c[k];
    const ContactVector<Lanes4> v_c{from.x + alpha * along.x, from.y + alpha * along.y,
                                    from.n + alpha * along.n};
    const ConeParameters<Lanes4>& parameters = contacts.parameters[k];
    const auto slope = ConeAlongLine(parameters, ProjectOnCone(parameters, v_c), along);
    first += slope.first;
    second += slope.second;
  }
  return {Sum(first), Sum(second)};
}

// StepGroup for one tree with friction contacts alone, by far the most frequent: contacts are
// evaluated four at a time, and kernels are inlined with sizes known at compile time. Scratch: H
// (n x n), then gradient, difference and step (n each).
template <typename Size>
void StepTree(const IslandView& view, int slot, Size n, double* scratch, SapData* data) {
  auto& state = data->pools[kFrictionPool];
  const int start = view.graph.velocity_start()[slot];
  double* v = data->v.data() + start;
  const double* v_star = view.model.v_star().data() + start;
  double* H = scratch;
  double* change = H + n * n;
  double* difference = change + n;  // v - v*, then -grad l, then A dv
  double* step = difference + n;

  ContactsOfTree contacts;
  GatherContacts(view, slot, state.v_c, &contacts);
  EvaluateContacts(&contacts);
  for (int i = 0; i < n; ++i) difference[i] = v[i] - v_star[i];
  view.model.MultiplyA(view.graph, slot, n, difference, change);
  if (view.range().coupled) {
    AddCoupledChange(view, slot, data->v, view.model.v_star(), change);
  }
  for (int i = 0; i < n; ++i) step[i] = -change[i];
  std::copy_n(view.model.A(view.graph, slot), n * n, H);
  ForContacts(contacts, [&](int i, int vector, int lane) {
    const ContactVector<double> gamma = LaneOf(contacts.gamma[vector], lane);
    state.gamma.Set(contacts.number[i], gamma);
    AddJtGamma(contacts.J[i], n, gamma, step);
    AddJtGJ(contacts.J[i], n, LaneOf(contacts.G[vector], lane), contacts.J[i], n, H);
  });
  std::copy_n(step, static_cast<int>(n), difference);
  if (SolveOnceWithTree(H, n, step) != DenseStatus::kOk) return;
  const StartingSlope at_zero = SlopeAtStart(n, difference, change, step);
  if (!(at_zero.f < -at_zero.roundoff)) return;  // this tree is where it wants to be

  view.model.MultiplyA(view.graph, slot, n, step, difference);
  LineSlope momentum;
  for (int i = 0; i < n; ++i) {
    momentum.first += step[i] * change[i];
    momentum.second += step[i] * difference[i];
  }
  ForContacts(contacts, [&](int i, int vector, int lane) {
    ContactVector<double> sum{0, 0, 0};
    AddJv(contacts.J[i], n, step, &sum);
    SetLane(sum, lane, &contacts.dv_c[vector]);
  });
  const auto slope_at = [&](double alpha) {
    LineSlope slope{momentum.first + alpha * momentum.second, momentum.second};
    slope += ContactsAlongLine(contacts, alpha);
    return slope;
  };
  const double alpha = RootOfSlope(at_zero.f, kLocalTolerance, slope_at, at_zero.roundoff);
  for (int i = 0; i < n; ++i) v[i] += alpha * step[i];
  ForContacts(contacts, [&](int i, int vector, int lane) {
    const ContactVector<double> from = LaneOf(contacts.v_c[vector], lane);
    const ContactVector<double> by = LaneOf(contacts.dv_c[vector], lane);
    state.v_c.Set(
        contacts.number[i],
        ContactVector<double>{from.x + alpha * by.x, from.y + alpha * by.y, from.n + alpha * by.n});
  });
}

// False if it was stopped in this group.
bool StepGroup(const IslandView& view, const SweepOrder& order, int number, SweptGroups groups,
               const StopToken& stop, SapData* data, SapStep* step) {
  const TreeGroup group = order.group(number);
  if (groups == SweptGroups::kKinked && order.num_groups(view.island) > 1 &&
      !HasKinkedConstraint(view, group, *data)) {
    return true;
  }
  int dofs = 0;
  for (const int slot : group.slots) dofs += view.graph.dofs()[slot];
  if (dofs <= kStackDofs) {
    double scratch[kStackScratch];
    const int slot = group.slots.front();
    if (view.range().kinds == 1U << kFrictionPool &&
        !view.model.pools[kFrictionPool].laws.InRounds(view.range(kFrictionPool).begin) &&
        NumContacts(view, slot) <= ContactsOfTree::kMax) {
      ForSize(dofs, [&](auto n) { StepTree(view, slot, n, scratch, data); });
    } else {
      StepGroup(view, group, dofs, stop, scratch, data, step);
    }
    return true;
  }
  if (stop.Requested()) return false;
  thread_local GrowingBuffer<double> kept;
  StepGroup(view, group, dofs, stop, kept.Reserve(static_cast<size_t>(dofs) * (dofs + 3)), data,
            step);
  kept.ReleaseAbove(kKeptScratch);
  return !stop.Requested();
}

}  // namespace

bool Sweep(const IslandView& view, const SweepOrder& order, bool backward, const StopToken& stop,
           SapData* data, SapStep* step, SweptGroups groups) {
  std::atomic<bool> complete{true};
  const int colors = order.num_colors(view.island);
  for (int c = 0; c < colors; ++c) {
    const std::span<const int> of_color = order.color(view.island, backward ? colors - 1 - c : c);
    ForChunks(view.arena, 0, static_cast<int>(of_color.size()), kSweepGroups,
              [&](int begin, int end, int) {
                bool goes_on = !stop.Requested();
                for (int i = begin; i < end && goes_on; ++i) {
                  goes_on = StepGroup(view, order, of_color[i], groups, stop, data, step);
                }
                if (!goes_on) complete.store(false, std::memory_order_relaxed);
              });
  }
  return complete.load(std::memory_order_relaxed);
}

}  // namespace sap
