//! Times as documents have them, in UTC. Must never ask what time it is.

/// `2026-01-31T23:59:59Z` of milliseconds since the Unix epoch.
pub(crate) fn timestamp(millis: u64) -> String {
    let seconds = millis / 1000;
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    // Days are counted in eras of 400 years that begin with March, so that a leap day comes last.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The time of day, in UTC; with the date where it is another day than `now`'s.
pub(crate) fn time_of_day(millis: u64, now: u64) -> String {
    let whole = timestamp(millis);
    let (date, time) = whole.split_once('T').unwrap_or(("", &whole));
    match timestamp(now).starts_with(date) {
        true => time.to_owned(),
        false => format!("{date} {time}"),
    }
}

#[cfg(test)]
mod tests {
    use super::timestamp;

    #[test]
    fn times_are_written_as_editors_read_them() {
        let table = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_999, "2000-02-28T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (951_868_800_000, "2000-03-01T00:00:00Z"),
            (1_798_761_599_000, "2026-12-31T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ];
        for (millis, expected) in table {
            assert_eq!(timestamp(millis), expected);
        }
    }
}
