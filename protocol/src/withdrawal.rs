//! Taking a call back: the notification that says so, and which calls end by it. Does no IO, and knows no connection.

/// The notification, and the member of its parameters that has the call's id: as the protocol of language servers has it,
/// which editors' libraries send by themselves, and as the Agent Client Protocol has it.
pub const NOTIFICATIONS: [(&str, &str); 2] =
    [("$/cancelRequest", "id"), ("$/cancel_request", "requestId")];

/// Methods whose calls may be taken back: they only wait or read, but for `tool/run`, whose call of a tool ends with it. A
/// call of another method is carried out and answered all the same.
pub const METHODS: &[&str] = &[
    "turn/wait",
    "tool/run",
    "tool/list",
    "tool/check",
    "toolbox/list",
    "command/list",
    "command/complete",
    "provider/list",
    "provider/models",
    "provider/instances",
    "model/list",
    "model/pull",
    "agent/list",
    "schema/check",
    "session/list",
    "session/search",
    "session/history",
    "session/export",
    "daemon/status",
];
