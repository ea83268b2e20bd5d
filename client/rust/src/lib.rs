//! Frictional contact, solved in this process or at servers: a safe wrapper of the C library.
//!
//! ```no_run
//! let client = sap_islands::Client::connect("embedded:")?; // or "127.0.0.1:50051"
//! let mut problem = sap_islands::Problem { time_step: 0.01, ..Default::default() };
//! problem.bodies.mass = vec![2.0];
//! // ...
//! let solution = client.solve(&problem)?;
//! # Ok::<(), sap_islands::Error>(())
//! ```
//!
//! Names, units and ranges are those of `proto/sap/v1`, where each array is documented. Linking
//! needs the library of the same version; with the feature `transport` the one that reaches
//! servers.

mod bindings;

use bindings::*;
pub use bindings::{Bodies, BodyContacts, ContactLaws, Contacts, HuntCrossley, Rows, Trees};
use std::ffi::{CStr, CString};
use std::mem::size_of;
use std::os::raw::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::mpsc;

const ABI_VERSION: i32 = 0;

/// One time step. A group without arrays is absent.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    pub time_step: f64,
    pub trees: Trees,
    pub bodies: Bodies,
    pub contacts: Contacts,
    pub contact_laws: ContactLaws,
    pub contact_hunt_crossley: HuntCrossley,
    pub body_contacts: BodyContacts,
    pub body_contact_laws: ContactLaws,
    pub body_contact_hunt_crossley: HuntCrossley,
    pub rows: Rows,
}

impl Problem {
    /// Calls `use_it` with the structs of the problem, which point into it.
    fn with_structs<Result>(&self, use_it: impl FnOnce(*const RawProblem) -> Result) -> Result {
        let hunt_crossley = RawHuntCrossley::of(&self.contact_hunt_crossley);
        let laws = RawContactLaws::of(&self.contact_laws, &hunt_crossley);
        let body_hunt_crossley = RawHuntCrossley::of(&self.body_contact_hunt_crossley);
        let body_laws = RawContactLaws::of(&self.body_contact_laws, &body_hunt_crossley);
        use_it(&RawProblem {
            struct_size: size_of::<RawProblem>(),
            time_step: self.time_step,
            trees: &RawTrees::of(&self.trees),
            bodies: &RawBodies::of(&self.bodies),
            contacts: &RawContacts::of(&self.contacts, &laws),
            body_contacts: &RawBodyContacts::of(&self.body_contacts, &body_laws),
            rows: &RawRows::of(&self.rows),
        })
    }
}

/// The answer to one problem, with its certificate for each island.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    pub velocity: Vec<f64>,
    pub impulse: Vec<f64>,
    pub contact_velocity: Vec<f64>,
    pub row_impulse: Vec<f64>,
    pub row_velocity: Vec<f64>,
    pub angular_impulse: Vec<f64>,
    pub cost: f64,
    pub island_of_tree: Vec<i32>,
    /// `SAP_ISLAND_*`: 1 and 2 are solved.
    pub island_status: Vec<i32>,
    pub optimality_gap_bound: Vec<f64>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// Number of `google.rpc.Code`.
    pub kind: i32,
    pub message: String,
    /// The field at fault, as "contacts.friction\[17\]"; or empty.
    pub field: String,
    /// The limit that is exceeded; or empty.
    pub reason: String,
    pub retry_after_s: f64,
    pub request_id: String,
    pub server: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// A `sap_answer`. It may move to another thread while no call uses it.
struct Answer(*mut c_void);

unsafe impl Send for Answer {}

impl Answer {
    fn new() -> Self {
        let answer = unsafe { sap_answer_new() };
        assert!(!answer.is_null(), "no memory for an answer");
        Answer(answer)
    }

    fn error(&self) -> Error {
        unsafe fn text(given: *const c_char) -> String {
            CStr::from_ptr(given).to_string_lossy().into_owned()
        }
        unsafe {
            let error = &*sap_answer_error(self.0);
            Error {
                kind: error.kind,
                message: text(error.message),
                field: text(error.field),
                reason: text(error.reason),
                retry_after_s: error.retry_after_s,
                request_id: text(error.request_id),
                server: text(error.server),
            }
        }
    }

    fn outcome(&self) -> Result<Solution, Error> {
        unsafe {
            match sap_answer_solution(self.0).as_ref() {
                None => Err(self.error()),
                Some(given) => Ok(Solution {
                    velocity: given.velocity.to_vec(),
                    impulse: given.impulse.to_vec(),
                    contact_velocity: given.contact_velocity.to_vec(),
                    row_impulse: given.row_impulse.to_vec(),
                    row_velocity: given.row_velocity.to_vec(),
                    angular_impulse: given.angular_impulse.to_vec(),
                    cost: given.cost,
                    island_of_tree: given.island_of_tree.to_vec(),
                    island_status: (*given.islands).status.to_vec(),
                    optimality_gap_bound: (*given.islands).optimality_gap_bound.to_vec(),
                }),
            }
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        unsafe { sap_answer_free(self.0) }
    }
}

/// A client of the solver in this process, or of servers. Threads may share it.
pub struct Client(*mut c_void);

unsafe impl Send for Client {}
unsafe impl Sync for Client {}

impl Client {
    /// "embedded:", "HOST:PORT", "unix:PATH", several with commas between them, "dns:///NAME:PORT"
    /// or "xds:///NAME".
    pub fn connect(address: &str) -> Result<Self, Error> {
        assert_eq!(unsafe { sap_abi_version() }, ABI_VERSION, "the library has another interface");
        let text = CString::new(address).expect("an address without a zero byte");
        let answer = Answer::new();
        let mut client = null_mut();
        match unsafe { sap_connect(text.as_ptr(), null(), null(), &mut client, answer.0) } {
            0 => Ok(Client(client)),
            _ => Err(answer.error()),
        }
    }

    /// Solves one problem.
    pub fn solve(&self, problem: &Problem) -> Result<Solution, Error> {
        let answer = Answer::new();
        problem.with_structs(|structs| unsafe {
            sap_solve(self.0, structs, null(), null(), answer.0);
        });
        answer.outcome()
    }

    /// Solves one problem on a thread of the library, which calls back when it has ended, while
    /// `meanwhile` runs on this one.
    pub fn solve_while<Value>(
        &self,
        problem: &Problem,
        meanwhile: impl FnOnce() -> Value,
    ) -> (Value, Result<Solution, Error>) {
        extern "C" fn send(context: *mut c_void) {
            let sender = unsafe { Box::from_raw(context as *mut mpsc::Sender<()>) };
            let _ = sender.send(());
        }
        // The structs are read until the call has ended, also where `meanwhile` panics.
        struct WaitForEnd(mpsc::Receiver<()>);
        impl Drop for WaitForEnd {
            fn drop(&mut self) {
                let _ = self.0.recv();
            }
        }
        let answer = Answer::new();
        let value = problem.with_structs(|structs| {
            let (sender, receiver) = mpsc::channel::<()>();
            let context = Box::into_raw(Box::new(sender));
            let call = RawCall {
                struct_size: size_of::<RawCall>(),
                deadline_s: null(),
                stop: null(),
                servers: 0,
                background: 1,
                done: Some(send),
                context: context.cast(),
            };
            if unsafe { sap_solve(self.0, structs, null(), &call, answer.0) } != 0 {
                drop(unsafe { Box::from_raw(context) }); // it has not begun
            }
            let _wait = WaitForEnd(receiver);
            meanwhile()
        });
        (value, answer.outcome())
    }

    /// Opens a session: a sequence of problems, each started from the velocities of the last one.
    pub fn session(&self) -> Result<Session, Error> {
        let answer = Answer::new();
        let mut session = null_mut();
        match unsafe { sap_session_open(self.0, null(), null(), &mut session, answer.0) } {
            0 => Ok(Session { session, answer }),
            _ => Err(answer.error()),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        unsafe { sap_client_free(self.0) }
    }
}

/// A sequence of problems. It may outlive its client, and be used by one thread at a time.
pub struct Session {
    session: *mut c_void,
    answer: Answer,
}

unsafe impl Send for Session {}

impl Session {
    /// Solves the next problem. A step that fails leaves the session as it was.
    pub fn step(&mut self, problem: &Problem) -> Result<Solution, Error> {
        problem.with_structs(|structs| unsafe {
            sap_session_step(self.session, structs, null(), null(), self.answer.0);
        });
        self.answer.outcome()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        unsafe { sap_session_free(self.session) }
    }
}
