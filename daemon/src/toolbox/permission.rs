//! Permissions: what a rule set says of one call. Pure; reads no files.
