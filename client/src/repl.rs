//! The REPL.

use crate::error::Failure;
use crate::link::Link;
use protocol::session::Session;
use std::rc::Rc;

/// Runs it.
pub(crate) async fn run(_link: Rc<Link>, _session: Session) -> Result<(), Failure> {
    Err(Failure::new("not here yet"))
}
