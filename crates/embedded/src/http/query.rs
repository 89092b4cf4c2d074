//! The query of a request, and the percent signs in it and in paths.

use crate::status::Refused;

/// Names and values, decoded; empty pairs are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what is after the `?`.
    ///
    /// # Errors
    /// A percent sign without two digits, or bytes that are no UTF-8.
    pub(crate) fn parse(text: &str) -> Result<Self, Refused> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decoded(name, true)?, decoded(value, true)?))
        };
        let pairs: Option<Vec<_>> = pairs.map(pair).collect();
        let wrong = || Refused::bad_request(format!("the query {text:?} is not valid"));
        pairs.map(Self).ok_or_else(wrong)
    }

    /// A value that is there and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// Every value of a parameter that may be repeated.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let of_it = self.0.iter().filter(move |(known, _)| known == name);
        of_it
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// A parameter that is true or false; none if it is absent.
    ///
    /// # Errors
    /// The value is neither true nor false.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Refused> {
        match self.get(name) {
            None => Ok(None),
            Some("true" | "1" | "True" | "TRUE" | "t" | "T") => Ok(Some(true)),
            Some("false" | "0" | "False" | "FALSE" | "f" | "F") => Ok(Some(false)),
            Some(other) => Err(Refused::bad_request(format!(
                "the value {other:?} of {name} is not valid: use true or false"
            ))),
        }
    }

    /// A parameter that is a number; none if it is absent.
    ///
    /// # Errors
    /// The value is not a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Refused> {
        let wrong = |value: &str| {
            let message = format!("the value {value:?} of {name} is not valid: use a number");
            Refused::bad_request(message)
        };
        let value = self.get(name);
        value
            .map(|value| value.parse().map_err(|_| wrong(value)))
            .transpose()
    }
}

/// Without percent signs; `None` if it is not UTF-8 then, or a sign has no two digits after it.
pub(super) fn decoded(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes().iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let (high, low) = (rest.next().and_then(digit)?, rest.next().and_then(digit)?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if plus_is_space => b' ',
            other => *other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn pairs_may_be_empty_and_have_percent_signs() {
        let query = Query::parse("&limit=500&&labelSelector=x%20in+%281%2C2%29&watch").unwrap();
        assert_eq!(query.number("limit").unwrap(), Some(500));
        assert_eq!(query.get("labelSelector"), Some("x in (1,2)"));
        assert_eq!(query.get("watch"), None);
        assert_eq!(query.flag("watch").unwrap(), None);
    }

    #[test]
    fn nonsense_is_refused_and_nothing_panics() {
        for bad in ["%", "a=%1", "a=%zz", "a=%ff", "%e4%b8=1"] {
            assert!(Query::parse(bad).is_err(), "{bad}");
        }
        let query = Query::parse("limit=-1&watch=perhaps").unwrap();
        assert!(query.number("limit").is_err());
        assert!(query.flag("watch").is_err());
    }
}
