//! `dwell proxy`: standard input and output as a connection to the daemon. Must never look at what it passes on.

use crate::connect::{Start, raw};
use crate::error::Failure;
use crate::place::Place;
use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

/// Passed on at once.
const CHUNK: usize = 64 << 10;

/// Passes standard input on to the daemon and its words to standard output, until one of them ends.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Fail when no daemon answers, and start none
    #[arg(long)]
    no_start: bool,

    /// Start one only where the last one died, and fail where it was stopped
    #[arg(long, conflicts_with = "no_start")]
    revive: bool,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let start = match (args.no_start, args.revive) {
        (true, _) => Start::Never,
        (false, true) => Start::IfDied,
        (false, false) => Start::IfNeeded,
    };
    // To the daemon that is meant, and not to the one that is near.
    if let Some(remote) = &place.remote {
        let words = ["proxy"].into_iter().chain(start.flag());
        return remote.run(&words.map(str::to_owned).collect::<Vec<_>>());
    }
    let stream = raw(&place, start).await?.into_std()?;
    stream.set_nonblocking(false)?;
    let sending = stream.try_clone()?;
    // Ends with standard input, or with the process.
    std::thread::spawn(move || {
        let _ = send(&sending);
        let _ = sending.shutdown(Shutdown::Write);
    });
    // Not through the buffered one: a message need not end with a newline.
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    match pass(&mut &stream, &mut output) {
        // The daemon has died: there is nothing more to pass on, as after any other end of it.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(()),
        passed => Ok(passed?),
    }
}

fn send(mut stream: &UnixStream) -> io::Result<()> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    pass(&mut input, &mut stream)
}

/// The standard library's copy has the kernel move the bytes, which waits for more of them with the pipe locked: whoever reads
/// it then waits too, with what was written before.
fn pass(from: &mut impl io::Read, to: &mut impl io::Write) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) => to.write_all(&chunk[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
