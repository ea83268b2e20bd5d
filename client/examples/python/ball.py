"""A ball on a floor is pushed: one solve, one that is refused, and a session."""

import sys

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from sap.v1.problem_pb2 import BodyContacts, ContactProblem, RigidBodies
from sap.v1.solution_pb2 import IslandStatus
from sap.v1.solver_service_pb2 import OpenSession, SessionStep, SolveRequest, SolveSessionRequest
from sap.v1.solver_service_pb2_grpc import SolverServiceStub


def ball(friction: float) -> ContactProblem:
    """One step of 10 ms of a ball of 1 kg, radius 0.1 m, that touches the floor."""
    bodies = RigidBodies(
        mass=[1.0],
        inertia=[0.004, 0.004, 0.004, 0, 0, 0],
        center_of_mass=[0, 0, 0.1],
        free_motion_velocity=[0.1, 0, -0.0981, 0, 0, 0],
        body_id=[1],
    )
    floor = BodyContacts(
        body_a=[0],
        body_b=[-1],
        point=[0, 0, 0],
        normal=[0, 0, 1],
        signed_distance=[0],
        stiffness=[1e6],
        relaxation_time=[0.01],
        friction=[friction],
    )
    return ContactProblem(time_step=0.01, bodies=bodies, body_contacts=floor)


solver = SolverServiceStub(grpc.insecure_channel(sys.argv[1]))

solution = solver.Solve(SolveRequest(problem=ball(friction=0.5)), timeout=10).solution
v, force = solution.velocity, solution.impulse[2] / 0.01
status = IslandStatus.Name(solution.islands.status[0])
print(f"{v[0]:.3f} m/s, turning {v[4]:.3f} rad/s, pressed with {force:.2f} N: {status}")

try:
    solver.Solve(SolveRequest(problem=ball(friction=-1)), timeout=10)
except grpc.RpcError as error:
    for detail in rpc_status.from_call(error).details:
        fault = error_details_pb2.BadRequest()
        if detail.Unpack(fault):
            print(f"refused for {fault.field_violations[0].field}")


def requests():
    """Opens the session and sends three steps."""
    yield SolveSessionRequest(open=OpenSession())
    for step_id in (1, 2, 3):
        yield SolveSessionRequest(step=SessionStep(step_id=step_id, problem=ball(friction=0.5)))


for response in solver.SolveSession(requests(), timeout=10):
    if response.HasField("step"):
        step = response.step
        start = "warm" if step.warm_started else "cold"
        iterations = step.outcome.solution.islands.iterations[0]
        print(f"step {step.step_id}, {start}: {iterations} iterations")
