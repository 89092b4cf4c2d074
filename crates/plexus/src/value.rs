//! Values of flags, wherever they are written: what is legal, said when it is not.

/// A whole number within bounds.
pub(crate) fn number<const LOW: u16, const HIGH: u16>(text: &str) -> Result<u16, String> {
    text.parse()
        .ok()
        .filter(|number| (LOW..=HIGH).contains(number))
        .ok_or_else(|| format!("write a whole number from {LOW} to {HIGH}"))
}

/// A filter of the log. A word that is no level would be taken for a room of that name, and
/// nothing else would be logged.
pub(crate) fn log(text: &str) -> Result<String, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    for part in text.split(',').map(str::trim) {
        let level = LEVELS.iter().any(|level| level.eq_ignore_ascii_case(part));
        if !level && !part.contains('=') {
            let levels = LEVELS.join(", ");
            let shown: String = part.chars().take(64).collect();
            return Err(format!(
                "{shown:?} is not a level: write one of {levels}, or a room's, such as \
                 plexus_agent=debug"
            ));
        }
    }
    match tracing_subscriber::EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_say_their_range() {
        assert_eq!(number::<1, 256>("256"), Ok(256));
        for text in [
            "0",
            "257",
            "-1",
            "",
            "1.5",
            "many",
            "99999999999999999999",
            " 1",
        ] {
            let error = number::<1, 256>(text).unwrap_err();
            assert_eq!(error, "write a whole number from 1 to 256", "{text:?}");
        }
    }

    #[test]
    fn a_filter_is_made_of_levels() {
        for text in [
            "info",
            "INFO",
            "off",
            "info,plexus_agent=debug",
            "plexus_agent=trace, warn",
        ] {
            assert_eq!(log(text).as_deref(), Ok(text));
        }
        for text in ["verbose", "", "info,", "plexus_agent", "debug,verbose", "3"] {
            let error = log(text).unwrap_err();
            assert!(
                error.contains("off, error, warn, info, debug, trace"),
                "{error}"
            );
        }
        assert!(log("plexus_agent=verbose").is_err());
    }
}
