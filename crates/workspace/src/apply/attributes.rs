//! File attributes besides content and mode: owner, group, extended attributes.

use std::ffi::CString;
use std::os::fd::AsFd;

use rustix::fs::{Gid, Stat, Uid, XattrFlags};
use rustix::io::Errno;

pub(crate) struct Attributes {
    owner: u32,
    group: u32,
    extended: Vec<(CString, Vec<u8>)>,
}

impl Attributes {
    /// Reads the attributes of an open file.
    pub(crate) fn of(file: &impl AsFd, stat: &Stat) -> Result<Self, Errno> {
        let mut extended = Vec::new();
        for name in names(file)? {
            // An attribute that is removed meanwhile is skipped.
            let Ok(length) = rustix::fs::fgetxattr_query(file, name.as_c_str()) else { continue };
            let mut value = vec![0; length];
            let Ok(length) = rustix::fs::fgetxattr(file, name.as_c_str(), &mut value[..]) else { continue };
            value.truncate(length);
            extended.push((name, value));
        }
        Ok(Self { owner: stat.st_uid, group: stat.st_gid, extended })
    }
}

/// Returns the names of a file's extended attributes.
pub(crate) fn names(file: &impl AsFd) -> Result<Vec<CString>, Errno> {
    // One call suffices for files without attributes, which are most.
    let length = match rustix::fs::flistxattr_query(file) {
        Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
        Ok(length) => length,
        Err(errno) => return Err(errno),
    };
    let mut list = vec![0_u8; length];
    let length = rustix::fs::flistxattr(file, &mut list[..])?;
    list.truncate(length);
    let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| CString::new(name).ok()).collect())
}

pub(crate) const OWNER: &str = "owner";
const OWNER_AND_GROUP: &str = "owner and group";

/// Access list, which new files inherit from their directory.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Sets the attributes of a new file. Returns the ones that could not be set.
pub(crate) fn keep(attributes: &Attributes, file: &impl AsFd) -> Result<Vec<&'static str>, Errno> {
    let mut lost = Vec::new();
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if attributes.owner != user.as_raw() || attributes.group != group.as_raw() {
        let (owner, group) = (Uid::from_raw(attributes.owner), Gid::from_raw(attributes.group));
        let kept = rustix::fs::fchown(file, Some(owner), Some(group));
        // A user who cannot change the owner may still change the group to one of theirs.
        if kept.is_err() && rustix::fs::fchown(file, None, Some(group)).is_err() {
            lost.push(OWNER_AND_GROUP);
        } else if kept.is_err() && attributes.owner != user.as_raw() {
            lost.push(OWNER);
        }
    }
    let mut all = true;
    for (name, value) in &attributes.extended {
        all &= rustix::fs::fsetxattr(file, name.as_c_str(), value, XattrFlags::empty()).is_ok();
    }
    if !all {
        lost.push("extended attributes");
    }
    let is_list = |name: &CString| name.as_bytes() == ACCESS_LIST.as_bytes();
    if names(file)?.iter().any(is_list) && !attributes.extended.iter().any(|(name, _)| is_list(name)) {
        // An inherited access list could let other users access a file that was closed to them.
        rustix::fs::fremovexattr(file, ACCESS_LIST)?;
    }
    Ok(lost)
}
