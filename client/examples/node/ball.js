// A ball on a floor is pushed: one solve, one that is refused, and a session.
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const googleapis = require('google-proto-files');
const protobuf = require('protobufjs');

const [address, protos] = process.argv.slice(2);
const schema = loader.loadSync('sap/v1/solver_service.proto',
  { includeDirs: [protos], keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true });
const { SolverService } = grpc.loadPackageDefinition(schema).sap.v1;
const details = protobuf.loadSync(
  ['status.proto', 'error_details.proto'].map((name) => googleapis.getProtoPath('rpc', name)));

// One step of 10 ms of a ball of 1 kg, radius 0.1 m, that touches the floor.
const ball = (friction) => ({
  time_step: 0.01,
  bodies: {
    mass: [1], inertia: [0.004, 0.004, 0.004, 0, 0, 0], center_of_mass: [0, 0, 0.1],
    free_motion_velocity: [0.1, 0, -0.0981, 0, 0, 0], body_id: [1],
  },
  body_contacts: {
    body_a: [0], body_b: [-1], point: [0, 0, 0], normal: [0, 0, 1], signed_distance: [0],
    stiffness: [1e6], relaxation_time: [0.01], friction: [friction],
  },
});

const solver = new SolverService(address, grpc.credentials.createInsecure());
const deadline = () => ({ deadline: Date.now() + 10000 });

function solve() {
  solver.Solve({ problem: ball(0.5) }, deadline(), (error, response) => {
    if (error) throw error;
    const { velocity: v, impulse, islands } = response.solution;
    console.log(`${v[0].toFixed(3)} m/s, turning ${v[4].toFixed(3)} rad/s, ` +
      `pressed with ${(impulse[2] / 0.01).toFixed(2)} N: ${islands.status[0]}`);
    solveWhatIsRefused();
  });
}

function solveWhatIsRefused() {
  solver.Solve({ problem: ball(-1) }, deadline(), (error) => {
    const [bytes] = error.metadata.get('grpc-status-details-bin');
    const fault = details.lookupType('google.rpc.Status').decode(bytes).details
      .find((detail) => detail.type_url.endsWith('/google.rpc.BadRequest'));
    const [violation] = details.lookupType('google.rpc.BadRequest').decode(fault.value).fieldViolations;
    console.log(`refused for ${violation.field}`);
    runSession();
  });
}

function runSession() {
  const session = solver.SolveSession(deadline());
  session.on('data', ({ step }) => {
    if (!step) return;
    const start = step.warm_started ? 'warm' : 'cold';
    console.log(`step ${step.step_id}, ${start}: ${step.outcome.solution.islands.iterations[0]} iterations`);
  });
  session.write({ open: {} });
  for (const step_id of [1, 2, 3]) session.write({ step: { step_id, problem: ball(0.5) } });
  session.end();
}

solve();
