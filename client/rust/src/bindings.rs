//! The part of `sap_islands.h` that this crate uses.

use std::os::raw::{c_char, c_int, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Array<T> {
    pub data: *const T,
    pub length: i64,
}

impl<T> Array<T> {
    pub fn of(values: &[T]) -> Self {
        Array { data: values.as_ptr(), length: values.len() as i64 }
    }

    /// The values, which are those of an answer.
    ///
    /// # Safety
    /// The answer is alive and not used for another call.
    pub unsafe fn to_vec(self) -> Vec<T>
    where
        T: Clone,
    {
        if self.length == 0 {
            return Vec::new();
        }
        std::slice::from_raw_parts(self.data, self.length as usize).to_vec()
    }
}

/// A group of arrays: a struct of vectors for the caller, and the struct of the library, which
/// begins with its size and ends with pointers to other groups.
macro_rules! group {
    ($(#[$doc:meta])* $owned:ident, $raw:ident: $($name:ident: $value:ty),*;
     $($inner:ident: $pointed:ty),*) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $owned { $(pub $name: Vec<$value>),* }

        #[repr(C)]
        pub struct $raw {
            struct_size: usize,
            $($name: Array<$value>,)*
            $($inner: *const $pointed,)*
        }

        impl $raw {
            pub fn of(owned: &$owned $(, $inner: *const $pointed)*) -> Self {
                $raw {
                    struct_size: std::mem::size_of::<$raw>(),
                    $($name: Array::of(&owned.$name),)*
                    $($inner,)*
                }
            }
        }
    };
}

group!(
    /// Articulated trees in generalized velocities.
    Trees, RawTrees: dofs: u32, dynamics_matrix: f64, free_motion_velocity: f64,
    guess_velocity: f64, tree_id: u32, initial_velocity: f64;
);
group!(
    /// Free rigid bodies, in world axes.
    Bodies, RawBodies: mass: f64, inertia: f64, center_of_mass: f64, free_motion_velocity: f64,
    guess_velocity: f64, body_id: u32, initial_velocity: f64;
);
group!(
    /// Parameters of the laws of Hunt & Crossley.
    HuntCrossley, RawHuntCrossley: elastic_force: f64, dissipation: f64,
    lagged_normal_impulse: f64;
);
group!(
    /// Laws of contacts of either kind.
    ContactLaws, RawContactLaws: signed_distance: f64, stiffness: f64, relaxation_time: f64,
    friction: f64, regularization_t: f64, regularization_n: f64, delassus_estimate: f64,
    surface_velocity: f64, friction_2: f64, torsional_friction: f64, rolling_friction: f64,
    target_velocity: f64, target_angular_velocity: f64, adhesion: f64, law: i32;
    hunt_crossley: RawHuntCrossley
);
group!(
    /// Contacts given by Jacobians.
    Contacts, RawContacts: tree_a: i32, tree_b: i32, jacobian: f64, angular_jacobian: f64;
    laws: RawContactLaws
);
group!(
    /// Contacts between bodies, in world axes.
    BodyContacts, RawBodyContacts: body_a: i32, body_b: i32, point: f64, normal: f64, tangent: f64;
    laws: RawContactLaws
);
group!(
    /// Constraint rows.
    Rows, RawRows: entries: u32, velocity_index: u32, coefficient: f64, position_error: f64,
    velocity_offset: f64, stiffness: f64, relaxation_time: f64, force_lower: f64, force_upper: f64,
    regularization: f64, target_velocity: f64, delassus_estimate: f64, slip_parameter: f64,
    force_offset: f64;
);

#[repr(C)]
pub struct RawProblem {
    pub struct_size: usize,
    pub time_step: f64,
    pub trees: *const RawTrees,
    pub bodies: *const RawBodies,
    pub contacts: *const RawContacts,
    pub body_contacts: *const RawBodyContacts,
    pub rows: *const RawRows,
}

#[repr(C)]
pub struct RawCall {
    pub struct_size: usize,
    pub deadline_s: *const f64,
    pub stop: *const c_void,
    pub servers: i32,
    pub background: i32,
    pub done: Option<extern "C" fn(*mut c_void)>,
    pub context: *mut c_void,
}

#[repr(C)]
pub struct RawError {
    pub struct_size: usize,
    pub kind: i32,
    pub lost_attempts: i32,
    pub message: *const c_char,
    pub field: *const c_char,
    pub index: i64,
    pub reason: *const c_char,
    pub retry_after_s: f64,
    pub request_id: *const c_char,
    pub server: *const c_char,
}

#[repr(C)]
pub struct RawIslandReports {
    pub struct_size: usize,
    pub status: Array<i32>,
    pub iterations: Array<u32>,
    pub factorizations: Array<u32>,
    pub momentum_residual: Array<f64>,
    pub optimality_gap_bound: Array<f64>,
}

#[repr(C)]
pub struct RawSolution {
    pub struct_size: usize,
    pub velocity: Array<f64>,
    pub impulse: Array<f64>,
    pub contact_velocity: Array<f64>,
    pub row_impulse: Array<f64>,
    pub row_velocity: Array<f64>,
    pub angular_impulse: Array<f64>,
    pub delassus_estimate: Array<f64>,
    pub cost: f64,
    pub island_of_tree: Array<i32>,
    pub islands: *const RawIslandReports,
}

#[cfg_attr(feature = "transport", link(name = "sap_islands_client"))]
#[cfg_attr(not(feature = "transport"), link(name = "sap_islands"))]
extern "C" {
    pub fn sap_abi_version() -> c_int;
    pub fn sap_answer_new() -> *mut c_void;
    pub fn sap_answer_free(answer: *mut c_void);
    pub fn sap_answer_error(answer: *const c_void) -> *const RawError;
    pub fn sap_answer_solution(answer: *const c_void) -> *const RawSolution;
    pub fn sap_connect(
        address: *const c_char,
        options: *const c_void,
        call: *const RawCall,
        client: *mut *mut c_void,
        answer: *mut c_void,
    ) -> c_int;
    pub fn sap_client_free(client: *mut c_void);
    pub fn sap_solve(
        client: *mut c_void,
        problem: *const RawProblem,
        options: *const c_void,
        call: *const RawCall,
        answer: *mut c_void,
    ) -> c_int;
    pub fn sap_session_open(
        client: *mut c_void,
        options: *const c_void,
        call: *const RawCall,
        session: *mut *mut c_void,
        answer: *mut c_void,
    ) -> c_int;
    pub fn sap_session_free(session: *mut c_void);
    pub fn sap_session_step(
        session: *mut c_void,
        problem: *const RawProblem,
        options: *const c_void,
        call: *const RawCall,
        answer: *mut c_void,
    ) -> c_int;
}
