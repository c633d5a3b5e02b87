//! `strftime_now`: takes seconds since 1970 and a format, gives the date and time. Must not
//! ask what time it is.

use minijinja::{Error, ErrorKind};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const DAY_S: i64 = 86_400;

/// Year, month 1..=12, day 1..=31 in the Gregorian calendar, and day of the year from 1.
fn date(days_since_1970: i64) -> (i64, usize, i64, i64) {
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    // Every 400 years have the same 146 097 days.
    let mut day = (days_since_1970 + 719_528).rem_euclid(146_097);
    let mut year = (days_since_1970 + 719_528).div_euclid(146_097) * 400;
    while day >= 365 + i64::from(is_leap(year)) {
        day -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let day_of_year = day + 1;
    let february = 28 + i64::from(is_leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    (year, month, day + 1, day_of_year)
}

/// Formats as `strftime` does in the C locale; `%-d` and the like leave out the padding.
pub(super) fn format(now_s: i64, format: &str) -> Result<String, Error> {
    // 9999 years on either side; keeps the arithmetic in range.
    let now_s = now_s.clamp(-315_000_000_000, 253_402_300_799);
    let days = now_s.div_euclid(DAY_S);
    let second = now_s.rem_euclid(DAY_S);
    let (year, month, day, day_of_year) = date(days);
    let weekday = (days + 4).rem_euclid(7) as usize;
    let hour = second / 3600;
    let (minute, second) = (second / 60 % 60, second % 60);
    let hour_12 = (hour + 11) % 12 + 1;
    let mut out = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = rest.next();
        let padded = directive != Some('-');
        if !padded {
            directive = rest.next();
        }
        let mut number = |value: i64, width: usize| {
            let width = if padded { width } else { 1 };
            out.push_str(&format!("{value:0width$}"));
        };
        match directive {
            Some('Y') => number(year, 4),
            Some('y') => number(year.rem_euclid(100), 2),
            Some('m') => number(month as i64, 2),
            Some('d') => number(day, 2),
            Some('j') => number(day_of_year, 3),
            Some('H') => number(hour, 2),
            Some('I') => number(hour_12, 2),
            Some('M') => number(minute, 2),
            Some('S') => number(second, 2),
            Some('B') => out.push_str(MONTHS[month - 1]),
            Some('b') => out.push_str(&MONTHS[month - 1][..3]),
            Some('A') => out.push_str(DAYS[weekday]),
            Some('a') => out.push_str(&DAYS[weekday][..3]),
            Some('p') => out.push_str(if hour < 12 { "AM" } else { "PM" }),
            Some('F') => out.push_str(&format!("{year:04}-{month:02}-{day:02}")),
            Some('T') => out.push_str(&format!("{hour:02}:{minute:02}:{second:02}")),
            Some('%') => out.push('%'),
            other => {
                let other = other.map_or(String::new(), String::from);
                let detail = format!("strftime_now does not know %{other}");
                return Err(Error::new(ErrorKind::InvalidOperation, detail));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn known_dates() {
        let all = "%Y-%m-%d %H:%M:%S %B %b %A %a %j %y %-d %I %p %F %T %%";
        let cases = [
            (0, "1970-01-01 00:00:00 January Jan Thursday Thu 001 70 1 12 AM 1970-01-01 00:00:00 %"),
            (951_782_400 + 3_661, "2000-02-29 01:01:01 February Feb Tuesday Tue 060 00 29 01 AM 2000-02-29 01:01:01 %"),
            (1_735_689_599, "2024-12-31 23:59:59 December Dec Tuesday Tue 366 24 31 11 PM 2024-12-31 23:59:59 %"),
            (-1, "1969-12-31 23:59:59 December Dec Wednesday Wed 365 69 31 11 PM 1969-12-31 23:59:59 %"),
        ];
        for (now_s, expected) in cases {
            assert_eq!(format(now_s, all).unwrap(), expected);
        }
        assert!(format(0, "%Q").is_err());
        assert!(format(0, "%").is_err());
        assert!(format(i64::MAX, "%F").is_ok() && format(i64::MIN, "%F").is_ok());
    }
}
