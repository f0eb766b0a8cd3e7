//! When whoever waits without a terminal's status line is told that the daemon, or the machine it runs on, cannot be
//! reached. Must never tell of a break that was mended at once.

use crate::link::Link;
use crate::out;
use crate::place::Place;
use std::time::Duration;
use tokio::sync::watch;

/// How long it may take to be mended until somebody is told, with what the attempts came to by then.
const QUIET: Duration = Duration::from_secs(1);

/// A link that is looked at.
pub(crate) struct Outages {
    down: watch::Receiver<Option<String>>,
    told: bool,
}

/// What is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outage {
    /// It began, and why, if that is known.
    Lost(String),
    /// It is over, well or not.
    Over,
}

impl Outages {
    pub(crate) fn of(link: &Link) -> Self {
        Self {
            down: link.down(),
            told: false,
        }
    }

    /// None when the link is gone for good.
    pub(crate) async fn next(&mut self) -> Option<Outage> {
        loop {
            let state = self.state().await;
            match state {
                Some(why) if !self.told => {
                    self.told = true;
                    return Some(Outage::Lost(why));
                }
                None if self.told => {
                    self.told = false;
                    return Some(Outage::Over);
                }
                Some(_) | None => self.down.changed().await.ok()?,
            }
        }
    }
}

impl Outages {
    /// Why it is down, once it has been so for a while; none as soon as it is up.
    async fn state(&mut self) -> Option<String> {
        if self.down.borrow().is_some() && !self.told {
            let up = self.down.wait_for(Option::is_none);
            // What is left of the wait is of no use: it is up, down, or gone for good.
            let _ = tokio::time::timeout(QUIET, up).await.is_ok();
        }
        self.down.borrow_and_update().clone()
    }
}

/// Which daemon.
pub(crate) fn whereabouts(place: &Place) -> String {
    match &place.remote {
        Some(remote) => format!("the daemon on {}", remote.host()),
        None => "the daemon".to_owned(),
    }
}

/// That it is lost, without what comes of it.
pub(crate) fn sentence(place: &Place, why: &str) -> String {
    let at = whereabouts(place);
    match why {
        "" => format!("the connection to {at} is lost"),
        why => format!("the connection to {at} is lost ({why})"),
    }
}

/// Says on stderr that a command waits for another machine. One on this machine is back, or given up, within seconds.
pub(crate) fn tell(link: &Link) {
    if link.place().remote.is_none() {
        return;
    }
    let place = link.place().clone();
    let mut outages = Outages::of(link);
    // Ends with the process.
    tokio::spawn(async move {
        while let Some(outage) = outages.next().await {
            let text = match outage {
                Outage::Lost(why) => format!("{}: it is tried again", sentence(&place, &why)),
                // Whether it is back is seen by what comes, or by the command's own error.
                Outage::Over => continue,
            };
            // Nobody reads it: there is nothing else to tell.
            let _ = out::note(&format!("warning: {text}"));
        }
    });
}
