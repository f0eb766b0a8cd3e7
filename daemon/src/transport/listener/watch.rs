//! Notices when a file is taken away or exchanged, by inotify: nothing is done, nor any timer set, while nothing happens.
//! Must never be believed to say what happened: whoever is woken looks for itself.

use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio::io::unix::AsyncFd;

/// Watches files, and the folders they are in.
pub(super) struct Watch(AsyncFd<OwnedFd>);

impl Watch {
    /// Fails when one of them is not there.
    pub(super) fn on<'a>(files: impl IntoIterator<Item = &'a Path>) -> io::Result<Self> {
        let queue = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let itself = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        for file in files {
            // The number of names of a file is among its attributes, and a bound socket lives on without one. A folder is
            // watched for its own fate alone, since others' files may come and go in it.
            add_watch(
                &queue,
                file,
                itself | WatchFlags::ATTRIB | WatchFlags::DONT_FOLLOW,
            )?;
            if let Some(folder) = file
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty())
            {
                add_watch(&queue, folder, itself)?;
            }
        }
        // SAFETY: the descriptor is owned by what is registered, and stays the same and open for as long as that lives.
        let registered = unsafe { AsyncFd::register(queue) };
        Ok(Self(registered.map_err(io::Error::from)?))
    }

    /// Resolves when something happened since the last time.
    pub(super) async fn changed(&self) -> io::Result<()> {
        let mut events = [0; 4096];
        let mut ready = self.0.readable().await?;
        while rustix::io::read(self.0.get_ref(), &mut events[..]).is_ok() {}
        ready.clear_ready();
        Ok(())
    }
}
