//! A world by its name, and the right to make its hosts.

use anyhow::{Context, Result};
use bench::environment::MODEL;
use bench::options::NicOptions;
use bench::world::model::ModelWorld;
use bench::world::{World, WorldKind};
use sys::privilege::{Privilege, PrivilegeError, become_capable};

use crate::environment;
use crate::live::Live;
use crate::virtual_time::Virtual;

/// Makes this process able to create the hosts of these worlds, once for all of them; `None` if
/// they have none.
///
/// # Errors
/// If this user may not.
pub fn privilege(
    worlds: impl IntoIterator<Item = WorldKind>,
) -> Result<Option<Privilege>, PrivilegeError> {
    let has_hosts = worlds.into_iter().any(|world| world != WorldKind::Model);
    has_hosts.then(become_capable).transpose()
}

/// Opens a world of two hosts; all but the model make some, by `privilege`.
///
/// # Errors
/// If the world cannot be made as `nic` says.
pub fn open(
    world: WorldKind,
    nic: &NicOptions,
    privilege: Option<Privilege>,
) -> Result<Box<dyn World>> {
    let right = || privilege.context("this world makes hosts, which takes the right to");
    Ok(match world {
        WorldKind::Model => Box::new(ModelWorld::new(nic, environment::read(MODEL))?),
        WorldKind::Live => Box::new(Live::start(2, nic, right()?)?),
        WorldKind::Virtual => Box::new(Virtual::new(nic, right()?)?),
    })
}
