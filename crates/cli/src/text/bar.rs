//! A share as a bar.

use super::{Paint, Screen};

/// `used` of `all` as a bar of so many columns, with the percentage. Anything in use shows, and
/// full is full only if nothing is left.
pub fn bar(used: u128, all: u128, columns: usize, screen: Screen) -> String {
    let columns = columns.max(1);
    let filled = match (used, all) {
        (0, _) | (_, 0) => 0,
        (used, all) if used >= all => columns,
        (used, all) => part(used, all, columns).clamp(1, columns.saturating_sub(1).max(1)),
    };
    let paint = match (used, all) {
        (_, 0) => Paint::Faint,
        (used, all) if used >= all => Paint::Bad,
        (used, all) if part(used, all, 100) >= 80 => Paint::Warn,
        _ => Paint::Good,
    };
    let (full, empty) = ("#".repeat(filled), ".".repeat(columns - filled));
    let percent = match (used, all) {
        (_, 0) => "-".to_owned(),
        (used, all) if used >= all => "100%".to_owned(),
        (0, _) => "0%".to_owned(),
        (used, all) => match part(used, all, 100) {
            0 => "<1%".to_owned(),
            percent => format!("{}%", percent.min(99)),
        },
    };
    format!("[{}{empty}] {percent}", screen.paint(paint, &full))
}

/// The share of so many pieces, however large the numbers are.
fn part(used: u128, all: u128, pieces: usize) -> usize {
    let (mut used, mut all) = (used, all);
    let pieces = pieces as u128;
    while used.checked_mul(pieces).is_none() {
        used >>= 1;
        all >>= 1;
    }
    usize::try_from(used * pieces / all.max(1)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_say_what_matters() {
        for (used, all, expected) in [
            (0, 10, "[..........] 0%"),
            (1, 1000, "[#.........] <1%"),
            (5, 10, "[#####.....] 50%"),
            (999, 1000, "[#########.] 99%"),
            (10, 10, "[##########] 100%"),
            (11, 10, "[##########] 100%"),
            (0, 0, "[..........] -"),
            (u128::MAX / 2, u128::MAX, "[####......] 49%"),
        ] {
            assert_eq!(bar(used, all, 10, Screen::PIPE), expected, "{used}/{all}");
        }
        assert_eq!(bar(1, 2, 0, Screen::PIPE), "[#] 50%");
    }
}
