#include "client/mujoco/python_calls.h"

#include "client/mujoco/comparison.h"
#include "client/mujoco/problem_writer.h"
#include "client/mujoco/stage_outputs.h"

void sap_mujoco_measure(const sap_mujoco_field* table, const void* model, const void* data,
                        int32_t flags, sap_mujoco_layout* layout) {
  using namespace sap::mujoco;
  const Fields fields = ReadFields(table, model, data);
  const Trees trees(fields);
  *layout = MeasureProblem(fields, trees, Couplings(fields, trees), flags);
}

void sap_mujoco_build(const sap_mujoco_field* table, const void* model, const void* data,
                      int32_t flags, double sigma, sap_mujoco_layout* layout, double* doubles,
                      uint32_t* unsigned_integers, int32_t* integers) {
  using namespace sap::mujoco;
  const Fields fields = ReadFields(table, model, data);
  const Trees trees(fields);
  WriteProblem(fields, trees, Couplings(fields, trees), flags, sigma, layout, doubles,
               unsigned_integers, integers);
}

void sap_mujoco_store_forces(const sap_mujoco_field* table, const void* model, const void* data,
                             int32_t flags, const sap_mujoco_layout* layout, double* doubles,
                             int32_t* integers, const double* solution) {
  using namespace sap::mujoco;
  const Fields fields = ReadFields(table, model, data);
  const double* row_impulse = solution + fields.nv;
  const double* impulse = row_impulse + layout->rows;
  const double* angular_impulse = impulse + 3 * layout->contacts;
  StoreForces(fields, flags, *layout, doubles, integers,
              {solution, row_impulse, impulse, angular_impulse});
}

void sap_mujoco_store_island_arrays(const sap_mujoco_field* table, const void* model,
                                    const void* data, int32_t flags) {
  using namespace sap::mujoco;
  StoreIslandArrays(ReadFields(table, model, data), (flags & SAP_MUJOCO_SPARSE) != 0);
}

void sap_mujoco_compare(const sap_mujoco_field* table, const void* model, const void* data,
                        const sap_mujoco_velocities* velocities, double* tree_error,
                        sap_mujoco_comparison* comparison) {
  using namespace sap::mujoco;
  const Fields fields = ReadFields(table, model, data);
  *comparison = Compare(fields, Trees(fields), *velocities, tree_error);
}
