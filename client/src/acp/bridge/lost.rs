//! What the editor is told while the daemon, or the machine it runs on, cannot be reached. Must never say so of a break
//! that was mended at once.

use super::Bridge;
use protocol::event::Level;
use std::rc::Rc;
use tokio::task::spawn_local;

impl Bridge {
    /// Tells every open session of a lost connection, and of its end.
    pub(in crate::acp) fn watch_link(self: &Rc<Self>) {
        // The bridge lives as long as the process.
        let bridge = Rc::clone(self);
        spawn_local(async move {
            let mut down = bridge.link.down();
            let mut told = false;
            while down.changed().await.is_ok() {
                let why = down.borrow_and_update().clone();
                match why.as_deref() {
                    // The first attempt is under way.
                    Some("") => {}
                    Some(_) if told => {}
                    Some(why) => {
                        told = true;
                        bridge.tell_all(Level::Warning, &bridge.lost(why)).await;
                    }
                    None if told => {
                        told = false;
                        let (level, text) = bridge.over();
                        bridge.tell_all(level, &text).await;
                    }
                    None => {}
                }
            }
        });
    }

    fn lost(&self, why: &str) -> String {
        format!(
            "the connection to {} is lost ({why}): it is tried again, and what is sent meanwhile waits",
            self.whereabouts()
        )
    }

    fn over(&self) -> (Level, String) {
        let at = self.whereabouts();
        match self.link.connection().0.client.is_connected() {
            true => (Level::Info, format!("the connection to {at} is back")),
            false => (
                Level::Error,
                format!("{at} cannot be reached: the next prompt tries again"),
            ),
        }
    }

    fn whereabouts(&self) -> String {
        match &self.link.place().remote {
            Some(remote) => format!("the daemon on {}", remote.host()),
            None => "the daemon".to_owned(),
        }
    }

    async fn tell_all(&self, level: Level, text: &str) {
        for open in self.all_open() {
            open.tell(level, text).await;
        }
    }
}
