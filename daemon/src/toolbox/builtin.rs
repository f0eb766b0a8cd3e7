//! The tools that come with the daemon, one a file, one line each in the table.
