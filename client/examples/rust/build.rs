fn main() -> Result<(), Box<dyn std::error::Error>> {
    let protos = "../../../proto";
    tonic_prost_build::configure()
        .build_server(false)
        .compile_protos(&[format!("{protos}/sap/v1/solver_service.proto")], &[protos.into()])?;
    Ok(())
}
