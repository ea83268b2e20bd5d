// Binding to libsap_islands from Rust: the structs and functions that one solve needs. A box of
// 2 kg rests on the floor; the impulse that carries it is nearly m g dt.
//
//   rustc one_contact.rs -L CLONE/build/release/lib -l sap_islands -o one_contact
use std::ffi::{c_void, CStr};
use std::mem::size_of;
use std::os::raw::c_char;
use std::ptr::{null, null_mut};

#[repr(C)]
struct Array<T> {
    data: *const T,
    length: i64,
}

impl<T> Array<T> {
    const EMPTY: Array<T> = Array { data: null(), length: 0 };

    fn of(values: &[T]) -> Array<T> {
        Array { data: values.as_ptr(), length: values.len() as i64 }
    }
}

#[repr(C)]
struct Bodies {
    struct_size: usize,
    mass: Array<f64>,
    inertia: Array<f64>,
    center_of_mass: Array<f64>,
    free_motion_velocity: Array<f64>,
    guess_velocity: Array<f64>,
    body_id: Array<u32>,
}

// A struct may end early: what this program never sets is absent to the library.
#[repr(C)]
struct ContactLaws {
    struct_size: usize,
    signed_distance: Array<f64>,
    stiffness: Array<f64>,
    relaxation_time: Array<f64>,
    friction: Array<f64>,
}

#[repr(C)]
struct BodyContacts {
    struct_size: usize,
    body_a: Array<i32>,
    body_b: Array<i32>,
    point: Array<f64>,
    normal: Array<f64>,
    tangent: Array<f64>,
    laws: *const ContactLaws,
}

#[repr(C)]
struct Problem {
    struct_size: usize,
    time_step: f64,
    trees: *const c_void,
    bodies: *const Bodies,
    contacts: *const c_void,
    body_contacts: *const BodyContacts,
}

#[repr(C)]
struct Error {
    struct_size: usize,
    kind: i32,
    lost_attempts: i32,
    message: *const c_char,
}

#[repr(C)]
struct Solution {
    struct_size: usize,
    velocity: Array<f64>,
    impulse: Array<f64>,
}

#[link(name = "sap_islands")]
extern "C" {
    fn sap_abi_version() -> i32;
    fn sap_connect(
        address: *const c_char,
        options: *const c_void,
        call: *const c_void,
        client: *mut *mut c_void,
        answer: *mut c_void,
    ) -> i32;
    fn sap_client_free(client: *mut c_void);
    fn sap_answer_new() -> *mut c_void;
    fn sap_answer_free(answer: *mut c_void);
    fn sap_answer_error(answer: *const c_void) -> *const Error;
    fn sap_answer_solution(answer: *const c_void) -> *const Solution;
    fn sap_solve(
        client: *mut c_void,
        problem: *const Problem,
        options: *const c_void,
        call: *const c_void,
        answer: *mut c_void,
    ) -> i32;
}

fn main() {
    let bodies = Bodies {
        struct_size: size_of::<Bodies>(),
        mass: Array::of(&[2.0]),
        inertia: Array::of(&[0.01, 0.01, 0.01, 0.0, 0.0, 0.0]),
        center_of_mass: Array::of(&[0.0, 0.0, 0.1]),
        free_motion_velocity: Array::of(&[0.0, 0.0, -0.0981, 0.0, 0.0, 0.0]),
        guess_velocity: Array::EMPTY,
        body_id: Array::EMPTY,
    };
    let laws = ContactLaws {
        struct_size: size_of::<ContactLaws>(),
        signed_distance: Array::of(&[0.0]),
        stiffness: Array::of(&[1e8]),
        relaxation_time: Array::of(&[0.0]),
        friction: Array::of(&[0.5]),
    };
    let contacts = BodyContacts {
        struct_size: size_of::<BodyContacts>(),
        body_a: Array::of(&[0]),
        body_b: Array::of(&[-1]),
        point: Array::of(&[0.0, 0.0, 0.0]),
        normal: Array::of(&[0.0, 0.0, 1.0]),
        tangent: Array::EMPTY,
        laws: &laws,
    };
    let problem = Problem {
        struct_size: size_of::<Problem>(),
        time_step: 0.01,
        trees: null(),
        bodies: &bodies,
        contacts: null(),
        body_contacts: &contacts,
    };
    unsafe {
        assert_eq!(sap_abi_version(), 0);
        let answer = sap_answer_new();
        let mut client = null_mut();
        let address = b"embedded:\0".as_ptr().cast();
        let connected = sap_connect(address, null(), null(), &mut client, answer);
        if connected != 0 || sap_solve(client, &problem, null(), null(), answer) != 0 {
            let message = CStr::from_ptr((*sap_answer_error(answer)).message);
            panic!("{}", message.to_string_lossy());
        }
        let impulse = &(*sap_answer_solution(answer)).impulse;
        let gamma = std::slice::from_raw_parts(impulse.data, impulse.length as usize);
        println!("normal impulse {:.4} N s", gamma[2]);
        sap_answer_free(answer);
        sap_client_free(client);
    }
}
