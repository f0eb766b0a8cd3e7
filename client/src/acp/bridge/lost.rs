//! What the editor is told while the daemon, or the machine it runs on, cannot be reached. Must never say so of a break
//! that was mended at once.

use super::Bridge;
use crate::lost::{self, Outage, Outages};
use protocol::event::Level;
use std::rc::Rc;
use tokio::task::spawn_local;

impl Bridge {
    /// Tells every open session of a lost connection, and of its end.
    pub(in crate::acp) fn watch_link(self: &Rc<Self>) {
        // The bridge lives as long as the process.
        let bridge = Rc::clone(self);
        spawn_local(async move {
            let mut outages = Outages::of(&bridge.link);
            while let Some(outage) = outages.next().await {
                let (level, text) = match outage {
                    Outage::Lost(why) => (Level::Warning, bridge.lost(&why)),
                    Outage::Over => bridge.over(),
                };
                bridge.tell_all(level, &text).await;
            }
        });
    }

    fn lost(&self, why: &str) -> String {
        let lost = lost::sentence(self.link.place(), why);
        format!("{lost}: it is tried again, and what is sent meanwhile waits")
    }

    fn over(&self) -> (Level, String) {
        let at = lost::whereabouts(self.link.place());
        match self.link.connection().0.client.is_connected() {
            true => (Level::Info, format!("the connection to {at} is back")),
            false => (
                Level::Error,
                format!("{at} cannot be reached: the next prompt tries again"),
            ),
        }
    }

    async fn tell_all(&self, level: Level, text: &str) {
        for open in self.all_open() {
            open.tell(level, text).await;
        }
    }
}
