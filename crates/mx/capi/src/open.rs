//! Endpoints: their settings, how they are opened and closed.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mx::config::{Config, ContextBits};
use mx_io::endpoint::{Endpoint, EndpointOptions, MxError, Progress, WaitMode};
use mx_io::port::{Port, PortSpec, open_free};

use crate::abi::{
    EARMARK_MX_ANY_ENDPOINT, EARMARK_MX_PROGRESS_MANUAL, EARMARK_MX_PROGRESS_THREAD,
    EARMARK_MX_WAIT_HYBRID, EARMARK_MX_WAIT_SLEEP, EARMARK_MX_WAIT_SPIN, earmark_mx_endpoint_t,
    earmark_mx_settings_t,
};
use crate::codes::{Return, earmark_mx_return_t};
use crate::guard::{Failure, guard, place};
use crate::handles::{self, OpenEndpoint};
use crate::library;

/// The largest number of an endpoint; the one after it means all endpoints.
const LAST_NUMBER: u8 = 254;

/// The variable of the environment that names a port where the program does not.
const PORT: &str = "EARMARK_PORT";

/// How long one who closes waits before it wakes those who wait again.
const NAP: Duration = Duration::from_millis(1);

const DEFAULTS: earmark_mx_settings_t = earmark_mx_settings_t {
    size: size_of::<earmark_mx_settings_t>(),
    progress: EARMARK_MX_PROGRESS_THREAD,
    waiting: EARMARK_MX_WAIT_SLEEP,
    spin_us: 50,
    peer_timeout_ms: 5_000,
    close_timeout_ms: 5_000,
    context_bits: 0,
    context_shift: 0,
    crc: 0,
};

/// Fills in the usual settings. Pass the size of the structure, as the program knows it.
///
/// # Safety
/// `settings` is NULL, or has so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn earmark_mx_settings_init(
    settings: *mut earmark_mx_settings_t,
    size: usize,
) -> earmark_mx_return_t {
    guard(|| {
        if settings.is_null() || size < size_of::<usize>() {
            let text = "settings are NULL or have no room for their size; pass sizeof of them";
            return Err(Failure::new(Return::EARMARK_MX_BAD_ARGUMENT, text));
        }
        let usual = earmark_mx_settings_t { size, ..DEFAULTS };
        let known = size.min(size_of::<earmark_mx_settings_t>());
        // SAFETY: the program has so many bytes there.
        // JUSTIFICATION: its structure may be another version of ours.
        unsafe { settings.cast::<u8>().write_bytes(0, size) };
        // SAFETY: as above, and no more of ours is read than there is.
        // JUSTIFICATION: as above.
        unsafe { copy_bytes(&raw const usual, settings, known) };
        Ok(())
    })
}

/// Opens an endpoint on a port, such as packet:eth0, udp:10.0.0.1 or udp:eth0, with this number, or
/// EARMARK_MX_ANY_ENDPOINT; peers have to present the key. Without a port it is the one that the
/// variable EARMARK_PORT names, without settings these are the usual ones.
///
/// # Safety
/// `port` is NULL or a string, `settings` is NULL or has as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn earmark_mx_open_endpoint(
    port: *const c_char,
    endpoint_id: u32,
    key: u32,
    settings: *const earmark_mx_settings_t,
    endpoint: Option<&mut MaybeUninit<earmark_mx_endpoint_t>>,
) -> earmark_mx_return_t {
    guard(|| {
        library::check()?;
        let endpoint = place(endpoint, "endpoint")?;
        // SAFETY: it is NULL or a string.
        // JUSTIFICATION: C passes strings by their address.
        let spec = unsafe { spec(port) }?;
        // SAFETY: it is NULL or as large as it says.
        // JUSTIFICATION: C passes structures by their address.
        let settings = unsafe { settings_of(settings) }?;
        let options = options(&settings)?;
        let port = bound(&spec, endpoint_id)?;
        let config = config(&settings, key, port.mtu())?;
        let mtu = port.mtu();
        let mx = Endpoint::open(port, config, options)?;
        let close_timeout = Duration::from_millis(settings.close_timeout_ms.into());
        let eager_max = config.eager_max as usize;
        endpoint.write(handles::add(OpenEndpoint::new(mx, mtu, eager_max, close_timeout)));
        Ok(())
    })
}

/// Closes an endpoint: waits until peers have all messages, as long as the settings say, and ends
/// what is left. Its handle, its requests and their memory are free then, whatever this returns.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_close_endpoint(
    endpoint: earmark_mx_endpoint_t,
) -> earmark_mx_return_t {
    guard(|| {
        let mut open = handles::take(endpoint)?;
        open.closing.store(true, Ordering::Release);
        // Threads that are in a call return first.
        let open = loop {
            match Arc::try_unwrap(open) {
                Ok(open) => break open,
                Err(shared) => {
                    shared.mx.wakeup();
                    std::thread::sleep(NAP);
                    open = shared;
                }
            }
        };
        let OpenEndpoint { mx, close_timeout, .. } = open;
        Ok(mx.close(close_timeout)?)
    })
}

/// Copies bytes of a structure to another version of it.
///
/// # Safety
/// There are so many bytes in both.
unsafe fn copy_bytes<T>(from: *const T, to: *mut T, count: usize) {
    // SAFETY: as the caller says; the program's structure is none of ours.
    // JUSTIFICATION: a part of a structure has no type.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), count) };
}

/// # Safety
/// `text` is NULL or a string.
unsafe fn spec(text: *const c_char) -> Result<PortSpec, Failure> {
    let bad = |text: String| Failure::new(Return::EARMARK_MX_BAD_PORT, text);
    let name = if text.is_null() {
        std::env::var(PORT).map_err(|_| {
            bad(format!("no port is named; pass one, or set {PORT}=packet:IFACE or udp:IFACE"))
        })?
    } else {
        // SAFETY: it is a string.
        // JUSTIFICATION: C passes strings by their address.
        let name = unsafe { CStr::from_ptr(text) };
        name.to_str().map_err(|_| bad("name of a port: not UTF-8".to_owned()))?.to_owned()
    };
    name.parse().map_err(bad)
}

/// The program's settings, with the usual ones for what it does not know.
///
/// # Safety
/// `from` is NULL, or has as many bytes as it says.
unsafe fn settings_of(
    from: *const earmark_mx_settings_t,
) -> Result<earmark_mx_settings_t, Failure> {
    let mut settings = DEFAULTS;
    if from.is_null() {
        return Ok(settings);
    }
    // SAFETY: a size is the least that there is.
    // JUSTIFICATION: the program's structure may be another version of ours.
    let size = unsafe { from.cast::<usize>().read() };
    let ours = size_of::<earmark_mx_settings_t>();
    if size < size_of::<usize>() || size > 4096 {
        let text = format!("settings of {size} bytes: call earmark_mx_settings_init first");
        return Err(Failure::new(Return::EARMARK_MX_BAD_SETTING, text));
    }
    // SAFETY: there are so many bytes in both.
    // JUSTIFICATION: as above.
    unsafe { copy_bytes(from, &raw mut settings, size.min(ours)) };
    for at in ours..size {
        // SAFETY: `at` is below the size that the structure says it has.
        // JUSTIFICATION: as above.
        if unsafe { from.cast::<u8>().wrapping_add(at).read() } != 0 {
            let text = "settings that this library does not know; leave them 0, or get a newer one";
            return Err(Failure::new(Return::EARMARK_MX_BAD_SETTING, text));
        }
    }
    Ok(settings)
}

fn options(settings: &earmark_mx_settings_t) -> Result<EndpointOptions, Failure> {
    let bad = |what: &str, value: u32| {
        let text = format!("setting {what} is {value}; use a constant of the header");
        Failure::new(Return::EARMARK_MX_BAD_SETTING, text)
    };
    let progress = match settings.progress {
        EARMARK_MX_PROGRESS_THREAD => Progress::Thread,
        EARMARK_MX_PROGRESS_MANUAL => Progress::Manual,
        other => return Err(bad("progress", other)),
    };
    let waiting = match settings.waiting {
        EARMARK_MX_WAIT_SLEEP => WaitMode::Sleep,
        EARMARK_MX_WAIT_SPIN => WaitMode::Spin,
        EARMARK_MX_WAIT_HYBRID => WaitMode::Hybrid(Duration::from_micros(settings.spin_us.into())),
        other => return Err(bad("waiting", other)),
    };
    Ok(EndpointOptions { progress, waiting })
}

fn config(settings: &earmark_mx_settings_t, key: u32, mtu: u16) -> Result<Config, Failure> {
    let bits = |bits: u32| u8::try_from(bits).unwrap_or(u8::MAX);
    let context =
        ContextBits { bits: bits(settings.context_bits), shift: bits(settings.context_shift) };
    let peer_timeout = u64::from(settings.peer_timeout_ms) * 1_000_000;
    let config = Config {
        mtu,
        key,
        crc: settings.crc != 0,
        context,
        peer_timeout: base::time::Duration::from_nanos(peer_timeout),
        ..Config::default()
    };
    config.check().map_err(MxError::Config)?;
    Ok(config)
}

/// A port with the number that is wanted, or with the first that is free.
fn bound(spec: &PortSpec, endpoint_id: u32) -> Result<Box<dyn Port>, Failure> {
    let numbers = match u8::try_from(endpoint_id) {
        Ok(number) if number <= LAST_NUMBER => number..=number,
        _ if endpoint_id == EARMARK_MX_ANY_ENDPOINT => 0..=LAST_NUMBER,
        _ => {
            let text = format!(
                "endpoint {endpoint_id} of {spec}: use 0 to {LAST_NUMBER}, or \
                 EARMARK_MX_ANY_ENDPOINT"
            );
            return Err(Failure::new(Return::EARMARK_MX_BAD_ARGUMENT, text));
        }
    };
    Ok(open_free(spec, numbers).map_err(MxError::Port)?)
}
