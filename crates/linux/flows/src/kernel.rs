//! What loading any program into the kernel takes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use aya::programs::Program;
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::{Btf, Ebpf};

use super::FlowError;

/// Where the kernel describes its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The inode of the first PID namespace (`PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: u32 = 0xEFFF_FFFC;

/// The kernel's types.
pub(crate) fn types() -> Result<Btf, FlowError> {
    if !Path::new(BTF).exists() {
        return Err(FlowError::NoTypes);
    }
    Btf::from_sys_fs().map_err(|cause| FlowError::Types(cause.to_string()))
}

/// The PID namespace of this process, as `namespace` of `bpf/common.h` has it.
pub(crate) fn namespace() -> Result<u32, FlowError> {
    let own = fs::metadata("/proc/self/ns/pid")
        .map_err(|cause| FlowError::Read("/proc/self/ns/pid".into(), cause))?
        .ino() as u32;
    Ok(if own == FIRST_NAMESPACE { 0 } else { own })
}

/// Has the kernel verify a program.
pub(crate) fn check(
    ebpf: &mut Ebpf,
    btf: &Btf,
    name: &'static str,
    tracepoint: &'static str,
) -> Result<(), FlowError> {
    let Some(Program::BtfTracePoint(program)) = ebpf.program_mut(name) else {
        return Err(FlowError::NoTracepoint(tracepoint));
    };
    program.load(tracepoint, btf).map_err(|cause| match is_refusal(&cause) {
        true => FlowError::NotAllowed,
        false => FlowError::Verify(tracepoint, cause.to_string()),
    })
}

/// Has the kernel call a program that it has verified.
pub(crate) fn attach(
    ebpf: &mut Ebpf,
    name: &'static str,
    tracepoint: &'static str,
) -> Result<BtfTracePointLinkId, FlowError> {
    let attached = match ebpf.program_mut(name) {
        Some(Program::BtfTracePoint(program)) => program.attach(),
        _ => return Err(FlowError::NoTracepoint(tracepoint)),
    };
    attached.map_err(|cause| FlowError::Attach(tracepoint, cause.to_string()))
}

/// Why an object cannot be loaded.
pub(crate) fn refused(cause: &(dyn std::error::Error + 'static)) -> FlowError {
    if is_refusal(cause) {
        return FlowError::NotAllowed;
    }
    let mut words = cause.to_string();
    let mut source = cause.source();
    while let Some(inner) = source {
        words = format!("{words}: {inner}");
        source = inner.source();
    }
    FlowError::Load(words)
}

/// Whether it comes from the kernel's `EPERM`.
fn is_refusal(cause: &(dyn std::error::Error + 'static)) -> bool {
    let io = cause.downcast_ref::<std::io::Error>();
    let is_one = io.is_some_and(|io| io.raw_os_error() == Some(libc::EPERM));
    is_one || cause.source().is_some_and(is_refusal)
}
