//! Numbers: bounds, formats, and how Go would print them.

use super::node::{Limits, Node, Type};
use crate::status::Cause;
use serde_json::{Number, Value};

/// The largest integer up to which every integer is a double.
const EXACT: f64 = 9_007_199_254_740_991.0;

/// A number as Go's `encoding/json` gives it to the API server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Numeric {
    Integer(i64),
    Double(f64),
}

impl Numeric {
    pub(super) fn of(number: &Number) -> Self {
        match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Self::Integer(integer),
            (None, double) => Self::Double(double.unwrap_or(f64::NAN)),
        }
    }

    pub(super) fn is_integral(self) -> bool {
        match self {
            Self::Integer(_) => true,
            Self::Double(double) => double.trunc() == double && double.abs() <= EXACT,
        }
    }

    fn double(self) -> f64 {
        match self {
            // Bounds are doubles in a schema, so this is how precise they are.
            #[allow(clippy::cast_precision_loss, reason = "as precise as the bound")]
            Self::Integer(integer) => integer as f64,
            Self::Double(double) => double,
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Integer(integer) => integer.to_string(),
            Self::Double(double) => go_float(double),
        }
    }
}

/// Everything that is wrong with a number.
pub(super) fn problems(schema: &Node, number: &Number, path: &str, causes: &mut Vec<Cause>) {
    let number = Numeric::of(number);
    if let Some(kind) = out_of_range(schema, number) {
        causes.push(unplaced(format!(
            "Checked value must be of type {kind} in {path}"
        )));
    }
    let mut wrong = |what: String| {
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!(
                "Invalid value: {}: {path} in body should be {what}",
                number.text()
            ),
            field: path.to_owned(),
        });
    };
    let Limits {
        minimum,
        maximum,
        above_minimum,
        below_maximum,
        multiple_of,
        ..
    } = schema.limits;
    let value = number.double();
    // To an integer, a bound is an integer.
    let bound = |bound: f64| match number {
        Numeric::Integer(_) => (bound.trunc(), format!("{:.0}", bound.trunc())),
        Numeric::Double(_) => (bound, go_float(bound)),
    };
    if let Some(factor) = multiple_of
        && !is_multiple(value, factor)
    {
        wrong(format!("a multiple of {}", bound(factor).1));
    }
    if let Some((least, bound)) = minimum.map(bound) {
        if above_minimum && value <= least {
            wrong(format!("greater than {bound}"));
        } else if value < least {
            wrong(format!("greater than or equal to {bound}"));
        }
    }
    if let Some((most, bound)) = maximum.map(bound) {
        if below_maximum && value >= most {
            wrong(format!("less than {bound}"));
        } else if value > most {
            wrong(format!("less than or equal to {bound}"));
        }
    }
}

/// A problem of which the server does not say where it is, but in its text.
pub(super) fn unplaced(message: String) -> Cause {
    Cause {
        reason: "FieldValueInvalid",
        message: format!("Invalid value: \"\": {message}"),
        field: "<nil>".to_owned(),
    }
}

/// A value as the server quotes it.
pub(super) fn value_text(value: &Value) -> String {
    match value {
        Value::Number(number) => Numeric::of(number).text(),
        other => other.to_string(),
    }
}

/// The type that it does not fit, in words.
fn out_of_range(schema: &Node, number: Numeric) -> Option<String> {
    let [kind] = schema.types.as_slice() else {
        return None;
    };
    let fits = match (kind, schema.format.as_str()) {
        (Type::Integer, "int32") => {
            matches!(number, Numeric::Integer(integer) if i32::try_from(integer).is_ok())
                || matches!(number, Numeric::Double(double) if number.is_integral() && double.abs() <= f64::from(i32::MAX))
        }
        (Type::Integer, _) => number.is_integral(),
        (Type::Number, "float") => number.double().abs() <= f64::from(f32::MAX),
        _ => true,
    };
    if fits {
        return None;
    }
    Some(match schema.format.as_str() {
        format @ ("int32" | "int64" | "float") => format!("{} with format {format}", kind.name()),
        _ => format!("{} (default format)", kind.name()),
    })
}

fn is_multiple(value: f64, factor: f64) -> bool {
    if factor <= 0.0 {
        return true;
    }
    Numeric::Double(value / factor).is_integral()
}

/// As Go prints a double with `%v`.
fn go_float(double: f64) -> String {
    let size = double.abs();
    if double == 0.0 || (1e-4..1e6).contains(&size) {
        return format!("{double}");
    }
    let text = format!("{double:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = match exponent.strip_prefix('-') {
                Some(digits) => ('-', digits),
                None => ('+', exponent),
            };
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => text,
    }
}
