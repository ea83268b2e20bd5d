//! A box on the floor, stepped in this process or at the server whose address is given, and solved
//! once more in the background.

use sap_islands::{Client, Error, Problem};

fn box_on_floor() -> Problem {
    let mut problem = Problem { time_step: 0.01, ..Default::default() };
    problem.bodies.mass = vec![2.0];
    problem.bodies.inertia = vec![0.01, 0.01, 0.01, 0.0, 0.0, 0.0];
    problem.bodies.center_of_mass = vec![0.0, 0.0, 0.1];
    problem.bodies.free_motion_velocity = vec![0.0, 0.0, -0.0981, 0.0, 0.0, 0.0];
    problem.bodies.body_id = vec![1];
    problem.body_contacts.body_a = vec![0];
    problem.body_contacts.body_b = vec![-1];
    problem.body_contacts.point = vec![0.0, 0.0, 0.0];
    problem.body_contacts.normal = vec![0.0, 0.0, 1.0];
    problem.body_contact_laws.signed_distance = vec![0.0];
    problem.body_contact_laws.stiffness = vec![1e8];
    problem.body_contact_laws.relaxation_time = vec![0.0];
    problem.body_contact_laws.friction = vec![0.5];
    problem
}

fn main() -> Result<(), Error> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "embedded:".to_string());
    let client = Client::connect(&address)?;
    let mut problem = box_on_floor();
    let stepped = client.session()?.step(&problem)?;
    println!("normal impulse {:.4} N s", stepped.impulse[2]);
    let (waited, solved) = client.solve_while(&problem, || "while this ran");
    println!("the same {}: {}", waited, solved? == stepped);
    problem.body_contact_laws.friction[0] = -1.0;
    println!("{}", client.solve(&problem).unwrap_err());
    Ok(())
}
