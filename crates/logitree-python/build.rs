//! Sets `cfg(profile_guided)` where the compiler is given a profile: `_core.__profile__` says how it was built.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(profile_guided)");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if flags.contains("profile-use=") {
        println!("cargo::rustc-cfg=profile_guided");
    }
}
