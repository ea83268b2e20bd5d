// The solver itself: what it takes over, reports, leaves to DART and refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dart/collision/ode/OdeCollisionDetector.hpp>
#include <dart/constraint/DantzigBoxedLcpSolver.hpp>

#include "tests/client/dart/scene.h"
#include "tests/support/child_process.h"

namespace sap_islands::dart {
namespace {

using ::dart::dynamics::BodyNode;
using ::dart::dynamics::BoxShape;
using ::dart::dynamics::CollisionAspect;
using ::dart::dynamics::DynamicsAspect;
using ::dart::dynamics::FreeJoint;
using ::dart::dynamics::Skeleton;
using ::dart::dynamics::SkeletonPtr;
using ::dart::dynamics::SoftBodyNode;
using ::dart::dynamics::SoftBodyNodeHelper;
using ::dart::dynamics::WeldJoint;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::chrono::seconds kPatience{60};

TEST(DartConstraintSolverTest, TakesOverDetectorOptionsSkeletonsAndConstraints) {
  auto world = ::dart::simulation::World::create("world");
  auto& before = *world->getConstraintSolver();
  const auto detector = ::dart::collision::OdeCollisionDetector::create();
  before.setCollisionDetector(detector);
  before.getCollisionOption().maxNumContacts = 77;
  world->addSkeleton(Skeleton::create("one"));
  world->setTimeStep(0.002);
  world->setConstraintSolver(std::make_unique<SapConstraintSolver>());
  auto& after = *world->getConstraintSolver();
  EXPECT_EQ(after.getCollisionDetector(), detector);
  EXPECT_EQ(after.getCollisionOption().maxNumContacts, 77u);
  EXPECT_EQ(after.getSkeletons().size(), 1u);
  EXPECT_EQ(after.getTimeStep(), 0.002);
}

TEST(DartConstraintSolverTest, AStepWithoutConstraintsHasAnEmptyReport) {
  Scene scene;
  scene.AddGround(0.5);
  const SkeletonPtr box = scene.AddBox(1, {0.1, 0.1, 0.1}, {0, 0, 0.05});
  scene.Run(0.01);
  EXPECT_EQ(scene.report().contacts, 4);
  SetVelocity(box, {0, 0, 1});
  scene.Run(0.01);
  EXPECT_EQ(scene.report().contacts, 0);
  EXPECT_TRUE(scene.report().solved);
}

std::vector<double> PositionsAfterFall(const Options& options) {
  Scene scene(1e-3, options);
  scene.AddGround(0.5);
  for (int i = 0; i < 12; ++i) {
    scene.AddBox(1, {0.1, 0.1, 0.1}, {0.03 * (i % 3), 0.02 * (i % 2), 0.06 + 0.12 * i});
  }
  scene.Run(0.6);
  std::vector<double> positions;
  for (std::size_t i = 0; i < scene.world().getNumSkeletons(); ++i) {
    const Eigen::VectorXd q = scene.world().getSkeleton(i)->getPositions();
    positions.insert(positions.end(), q.data(), q.data() + q.size());
  }
  return positions;
}

TEST(DartConstraintSolverTest, RepeatsItsBitsForAnyNumberOfThreads) {
  Options one;
  one.threads = 1;
  EXPECT_EQ(PositionsAfterFall(one), PositionsAfterFall(Options()));
}

TEST(DartConstraintSolverTest, ATimeBudgetTakesTheBestIterateAndSaysSo) {
  Options options;
  options.time_budget_s = 1e-9;
  Scene scene(1e-3, options);
  scene.AddGround(0.5);
  const SkeletonPtr box = scene.AddBox(1, {0.1, 0.1, 0.1}, {0, 0, 0.049});
  SetVelocity(box, {1, 0, -1});
  scene.Run(0.001);
  EXPECT_FALSE(scene.report().solved);
  EXPECT_FALSE(scene.report().settled);
  EXPECT_EQ(scene.report().message, "");
  EXPECT_EQ(scene.report().solves, 1);
}

TEST(DartConstraintSolverTest, LeavesSoftBodiesToTheSolverOfDart) {
  auto fall = [](bool sap) {
    auto world = ::dart::simulation::World::create("world");
    // Soft bodies collide as meshes.
    if (sap) world->setConstraintSolver(std::make_unique<SapConstraintSolver>());
    auto ground = Skeleton::create("ground");
    auto [fixed, floor] = ground->createJointAndBodyNodePair<WeldJoint>();
    floor->createShapeNodeWith<CollisionAspect, DynamicsAspect>(
        std::make_shared<BoxShape>(Eigen::Vector3d(2, 2, 0.1)));
    world->addSkeleton(ground);
    auto soft = Skeleton::create("soft");
    SoftBodyNode::Properties properties(
        BodyNode::AspectProperties(),
        SoftBodyNodeHelper::makeBoxProperties(Eigen::Vector3d(0.2, 0.2, 0.2),
                                              Eigen::Isometry3d::Identity(), 1.0));
    soft->createJointAndBodyNodePair<FreeJoint, SoftBodyNode>(nullptr, FreeJoint::Properties(),
                                                              properties);
    soft->setPosition(5, 0.16);
    world->addSkeleton(soft);
    for (int i = 0; i < 100; ++i) world->step();
    if (sap) {
      const auto& solver = dynamic_cast<SapConstraintSolver&>(*world->getConstraintSolver());
      EXPECT_FALSE(solver.lastReport().solved);
      EXPECT_THAT(solver.lastReport().message, HasSubstr("soft bodies"));
    }
    return Eigen::VectorXd(soft->getPositions());
  };
  EXPECT_EQ(fall(true), fall(false));
}

// Asks for friction in proportion to its own normal impulse, which no row can have.
class OwnContact : public ::dart::constraint::ConstraintBase {
 public:
  OwnContact() { mDim = 2; }
  void update() override {}
  bool isActive() const override { return true; }
  void getInformation(::dart::constraint::ConstraintInfo* info) override {
    info->lo[0] = 0, info->hi[0] = INFINITY, info->lo[1] = -1, info->hi[1] = 1;
    info->x[0] = info->x[1] = info->b[0] = info->b[1] = 0;
    info->findex[1] = 0;
  }
  void applyUnitImpulse(std::size_t) override {}
  void getVelocityChange(double* change, bool) override { change[0] = change[1] = 1; }
  void excite() override {}
  void unexcite() override {}
  void applyImpulse(double*) override { ++applied; }
  SkeletonPtr getRootSkeleton() const override { return skeleton; }
  SkeletonPtr skeleton;
  int applied = 0;
};

TEST(DartConstraintSolverTest, LeavesWhatNoRowCanHaveToTheSolverOfDartAndNamesIt) {
  Scene scene;
  const auto constraint = std::make_shared<OwnContact>();
  constraint->skeleton = scene.AddBox(1, {0.1, 0.1, 0.1}, {0, 0, 1});
  scene.solver().addConstraint(constraint);
  scene.Run(0.002);
  EXPECT_EQ(constraint->applied, 2);
  EXPECT_THAT(scene.report().message, HasSubstr("bounds impulses by others"));
}

TEST(DartConstraintSolverTest, AContactThatTheSolverRefusesIsNamedAndLeftToTheSolverOfDart) {
  Scene scene;
  scene.AddGround(INFINITY);
  const SkeletonPtr box = scene.AddBox(1, {0.1, 0.1, 0.1}, {0, 0, 0.049}, INFINITY);
  SetVelocity(box, {0, 0, -1});
  scene.Run(0.001);
  EXPECT_THAT(scene.report().message, HasSubstr("contacts.friction[0] is inf"));
  EXPECT_GT(VelocityOf(box).z(), -1e-3);
}

// Where a box with 2 m/s and a coefficient of 0.4 stops, as an unchanged program prints it.
double SlideOfPlainProgram(const std::vector<std::string>& settings, std::string* errors) {
  std::vector<std::string> command{"/usr/bin/env"};
  command.insert(command.end(), settings.begin(), settings.end());
  command.push_back(PLAIN_PROGRAM);
  const sap::test::ProcessResult result = sap::test::RunProcess(command, kPatience);
  *errors = result.err;
  return result.exit_code == 0 ? std::stod(result.out) : -1;
}

TEST(DartPreloadTest, AnUnchangedProgramHasTheConeInThePlaceOfThePyramid) {
  const double cone = 2 * 2 / (2 * 0.4 * kGravity);
  std::string errors;
  EXPECT_NEAR(SlideOfPlainProgram({}, &errors), cone / std::sqrt(2), 2e-3);
  EXPECT_NEAR(SlideOfPlainProgram({"LD_PRELOAD=" PRELOAD_LIBRARY}, &errors), cone, 2e-3);
  EXPECT_THAT(errors, HasSubstr(" steps of DART solved\n"));
  EXPECT_THAT(errors, Not(HasSubstr("left to DART")));
}

TEST(DartPreloadTest, AnAddressThatNobodyServesEndsTheProgramInsteadOfSolvingByDart) {
  std::string errors;
  EXPECT_EQ(
      SlideOfPlainProgram(
          {"LD_PRELOAD=" PRELOAD_LIBRARY, "SAP_ISLANDS_ADDRESS=unix:/nonexistent/socket"}, &errors),
      -1);
  EXPECT_THAT(errors, HasSubstr("sap-islands: "));
}

TEST(DartPreloadTest, AProgramWithADartOfItsOwnEndsByItsName) {
  const auto step = [](const std::string& setting) {
    return sap::test::RunProcess(
        {"/usr/bin/env", setting, "python3", "-c",
         "import ctypes; ctypes.CDLL('" ANOTHER_DART "').step_another_dart()"},
        kPatience);
  };
  EXPECT_EQ(step("LD_PRELOAD=").out, "solved by another DART\n");
  const sap::test::ProcessResult preloaded = step("LD_PRELOAD=" PRELOAD_LIBRARY);
  EXPECT_EQ(preloaded.exit_code, 1);
  EXPECT_EQ(preloaded.out, "");
  EXPECT_THAT(preloaded.err, HasSubstr("sap-islands: " ANOTHER_DART " has a DART of its own"));
}

#ifdef SAP_SERVER_BINARY
TEST(DartConstraintSolverTest, AServerGivesTheBitsOfTheProcess) {
  sap::test::ChildProcess server({SAP_SERVER_BINARY, "--listen", "127.0.0.1:0", "--threads", "2"});
  Options options;
  options.address = server.WaitForLine("listening on ", kPatience);
  EXPECT_EQ(PositionsAfterFall(options), PositionsAfterFall(Options()));
}
#endif

TEST(DartConstraintSolverTest, RefusesAnAddressThatNobodyServes) {
  Options options;
  options.address = "unix:/nonexistent/socket";
  EXPECT_THROW(SapConstraintSolver{options}, std::runtime_error);
}

}  // namespace
}  // namespace sap_islands::dart
