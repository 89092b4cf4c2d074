//! The time of day, as objects have it. Only for stamps: nothing waits by this clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub(crate) fn seconds() -> i64 {
    i64::try_from(milliseconds() / 1000).unwrap_or(0)
}

/// Milliseconds since 1970; 0 for a clock that is before that.
pub(crate) fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default().as_millis();
    u64::try_from(since).unwrap_or(u64::MAX)
}

/// `2025-11-16T03:49:30Z`. Years have four digits: what is beyond them is the last second, or the first.
pub(crate) fn rfc3339(seconds: i64) -> String {
    const FIRST: i64 = -62_135_596_800;
    const LAST: i64 = 253_402_300_799;
    let seconds = seconds.clamp(FIRST, LAST);
    let (year, month, day) = date(seconds);
    let rest = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of seconds since 1970. Years begin in March here, so that the day that some
/// have more is their last.
pub(crate) fn date(seconds: i64) -> (i64, u8, u8) {
    const PER_400_YEARS: i64 = 146_097;
    let since_march_0 = seconds.div_euclid(86_400) + 719_468;
    let era = since_march_0.div_euclid(PER_400_YEARS);
    let day_of_era = since_march_0.rem_euclid(PER_400_YEARS);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let small = |value: i64| u8::try_from(value).unwrap_or(1);
    (year, small(month), small(day))
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_763_264_970, "2025-11-16T03:49:30Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (i64::MIN, "0001-01-01T00:00:00Z"),
            (i64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), text);
        }
    }
}
