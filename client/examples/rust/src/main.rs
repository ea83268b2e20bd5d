//! A ball on a floor is pushed: one solve, one that is refused, and a session.
use tonic_types::StatusExt;

mod sap {
    tonic::include_proto!("sap.v1");
}
use sap::solve_session_request::Request::{Open, Step};
use sap::{outcome, solve_session_response, solver_service_client::SolverServiceClient};

/// One step of 10 ms of a ball of 1 kg, radius 0.1 m, that touches the floor.
fn ball(friction: f64) -> Option<sap::ContactProblem> {
    Some(sap::ContactProblem {
        time_step: 0.01,
        bodies: Some(sap::RigidBodies {
            mass: vec![1.0],
            inertia: vec![0.004, 0.004, 0.004, 0.0, 0.0, 0.0],
            center_of_mass: vec![0.0, 0.0, 0.1],
            free_motion_velocity: vec![0.1, 0.0, -0.0981, 0.0, 0.0, 0.0],
            body_id: vec![1],
            ..Default::default()
        }),
        body_contacts: Some(sap::BodyContacts {
            body_a: vec![0],
            body_b: vec![-1],
            point: vec![0.0, 0.0, 0.0],
            normal: vec![0.0, 0.0, 1.0],
            signed_distance: vec![0.0],
            stiffness: vec![1e6],
            relaxation_time: vec![0.01],
            friction: vec![friction],
            ..Default::default()
        }),
        ..Default::default()
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("needs HOST:PORT")?;
    let mut solver = SolverServiceClient::connect(format!("http://{address}")).await?;

    let request = sap::SolveRequest { problem: ball(0.5), options: None };
    let solution = solver.solve(request).await?.into_inner().solution.unwrap_or_default();
    let status = solution.islands.unwrap_or_default().status().next().unwrap_or_default();
    let (v, force) = (solution.velocity, solution.impulse[2] / 0.01);
    println!(
        "{:.3} m/s, turning {:.3} rad/s, pressed with {force:.2} N: {}",
        v[0],
        v[4],
        status.as_str_name()
    );

    let request = sap::SolveRequest { problem: ball(-1.0), options: None };
    if let Err(error) = solver.solve(request).await {
        if let Some(fault) = error.get_details_bad_request() {
            println!("refused for {}", fault.field_violations[0].field);
        }
    }

    let steps = (1..=3).map(|step_id| {
        Step(sap::SessionStep { step_id, problem: ball(0.5), options: None })
    });
    let requests: Vec<_> = std::iter::once(Open(sap::OpenSession::default()))
        .chain(steps)
        .map(|request| sap::SolveSessionRequest { request: Some(request) })
        .collect();
    let mut session = solver.solve_session(tokio_stream::iter(requests)).await?.into_inner();
    while let Some(response) = session.message().await? {
        let Some(solve_session_response::Response::Step(step)) = response.response else {
            continue;
        };
        let start = if step.warm_started { "warm" } else { "cold" };
        if let Some(outcome::Outcome::Solution(solution)) = step.outcome.and_then(|o| o.outcome) {
            let iterations = solution.islands.unwrap_or_default().iterations[0];
            println!("step {}, {start}: {iterations} iterations", step.step_id);
        }
    }
    Ok(())
}
