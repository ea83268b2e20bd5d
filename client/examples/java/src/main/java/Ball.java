import com.google.rpc.BadRequest;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import sapislands.v1.BodyContacts;
import sapislands.v1.ContactProblem;
import sapislands.v1.ContactSolution;
import sapislands.v1.OpenSession;
import sapislands.v1.RigidBodies;
import sapislands.v1.SessionStep;
import sapislands.v1.SolveRequest;
import sapislands.v1.SolveSessionRequest;
import sapislands.v1.SolveSessionResponse;
import sapislands.v1.SolverServiceGrpc;

/** A ball on a floor is pushed: one solve, one that is refused, and a session. */
public final class Ball {
  /** One step of 10 ms of a ball of 1 kg, radius 0.1 m, that touches the floor. */
  static ContactProblem ball(double friction) {
    var body =
        RigidBodies.newBuilder()
            .addMass(1)
            .addAllInertia(List.of(0.004, 0.004, 0.004, 0.0, 0.0, 0.0))
            .addAllCenterOfMass(List.of(0.0, 0.0, 0.1))
            .addAllFreeMotionVelocity(List.of(0.1, 0.0, -0.0981, 0.0, 0.0, 0.0))
            .addBodyId(1);
    var floor =
        BodyContacts.newBuilder()
            .addBodyA(0)
            .addBodyB(-1)
            .addAllPoint(List.of(0.0, 0.0, 0.0))
            .addAllNormal(List.of(0.0, 0.0, 1.0))
            .addSignedDistance(0)
            .addStiffness(1e6)
            .addRelaxationTime(0.01)
            .addFriction(friction);
    return ContactProblem.newBuilder()
        .setTimeStep(0.01)
        .setBodies(body)
        .setBodyContacts(floor)
        .build();
  }

  public static void main(String[] arguments) throws Exception {
    ManagedChannel channel =
        ManagedChannelBuilder.forTarget(arguments[0]).usePlaintext().build();
    var solver = SolverServiceGrpc.newBlockingStub(channel);

    ContactSolution solution =
        solver.solve(SolveRequest.newBuilder().setProblem(ball(0.5)).build()).getSolution();
    System.out.printf(
        "%.3f m/s, turning %.3f rad/s, pressed with %.2f N: %s%n",
        solution.getVelocity(0),
        solution.getVelocity(4),
        solution.getImpulse(2) / 0.01,
        solution.getIslands().getStatus(0));

    try {
      solver.solve(SolveRequest.newBuilder().setProblem(ball(-1)).build());
    } catch (StatusRuntimeException error) {
      for (var detail : StatusProto.fromThrowable(error).getDetailsList()) {
        if (detail.is(BadRequest.class)) {
          BadRequest fault = detail.unpack(BadRequest.class);
          System.out.printf("refused for %s%n", fault.getFieldViolations(0).getField());
        }
      }
    }

    var done = new CompletableFuture<Void>();
    var session = SolverServiceGrpc.newStub(channel).solveSession(new Printer(done));
    session.onNext(
        SolveSessionRequest.newBuilder().setOpen(OpenSession.getDefaultInstance()).build());
    for (int id = 1; id <= 3; ++id) {
      var step = SessionStep.newBuilder().setStepId(id).setProblem(ball(0.5));
      session.onNext(SolveSessionRequest.newBuilder().setStep(step).build());
    }
    session.onCompleted();
    done.get(10, TimeUnit.SECONDS);
    channel.shutdown();
  }

  /** Prints the outcome of each step of a session. */
  record Printer(CompletableFuture<Void> done) implements StreamObserver<SolveSessionResponse> {
    @Override
    public void onNext(SolveSessionResponse response) {
      if (!response.hasStep()) {
        return;
      }
      var step = response.getStep();
      System.out.printf(
          "step %d, %s: %d iterations%n",
          step.getStepId(),
          step.getWarmStarted() ? "warm" : "cold",
          step.getOutcome().getSolution().getIslands().getIterations(0));
    }

    @Override
    public void onError(Throwable error) {
      done.completeExceptionally(error);
    }

    @Override
    public void onCompleted() {
      done.complete(null);
    }
  }
}
