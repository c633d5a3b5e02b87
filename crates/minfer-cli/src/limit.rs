//! How much memory may be used. Takes a wish such as `2GiB` or `auto` and what the system says; gives the narrowest
//! budget, and who sets it; must not know models.

use crate::exit::Failure;
use crate::memory::Memory;
use crate::output::mib;
use minfer::Budget;

/// What `--memory` may be.
pub const MEMORY_HELP: &str = "bytes, or a number with KB, KiB, MB, MiB, GB or GiB, such as 2GiB; or auto";

/// What somebody wishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Limit {
    /// Nothing: what is enforced decides.
    #[default]
    Enforced,
    /// What is free now.
    Auto,
    /// So many bytes.
    Bytes(u64),
}

/// Who sets a budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetBy {
    /// `--memory SIZE`.
    Asked,
    /// `--memory auto`.
    Free,
    /// A control group, which allows so many bytes to all in it.
    Group { limit_bytes: u64 },
    /// `ulimit -v`, which allows so many addresses.
    Addresses { limit_bytes: u64 },
    /// `ulimit -d`.
    Data,
    /// The machine. Weights are mapped and may even be larger.
    Machine,
}

/// A budget, and who sets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    pub budget: Budget,
    pub by: SetBy,
}

impl Limit {
    /// The limit in words, as typed.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if text == "auto" {
            return Ok(Limit::Auto);
        }
        let wrong = || Failure::new(format!("--memory is `{text}`, expected {MEMORY_HELP}"));
        bytes(text).map(Limit::Bytes).ok_or_else(wrong)
    }

    /// The narrowest bound of an engine: what is asked for holds, and so does what the system enforces, since whoever takes
    /// more is killed, whatever the command line says. Not in all do weights count, but no setting alters them: the bound
    /// that is narrowest for one configuration is so for each. Of equal ones it is the first. Where nobody limits anything,
    /// and where the system does not say what it has, there is none.
    pub fn bound(self, machine: Option<Memory>, weights_bytes: u64) -> Result<Option<Bound>, Failure> {
        let of_all = |bytes, by| Bound { budget: Budget::of_all(bytes), by };
        let beside_weights = |bytes, by| Bound { budget: Budget { bytes, weights: false }, by };
        let wish = match (self, machine) {
            (Limit::Enforced, _) => None,
            (Limit::Bytes(bytes), _) => Some(of_all(bytes, SetBy::Asked)),
            (Limit::Auto, Some(machine)) => Some(of_all(machine.available_bytes, SetBy::Free)),
            (Limit::Auto, None) => {
                let failure = Failure::new("--memory auto: the system does not say how much memory is free");
                return Err(failure.hint("give a number, such as --memory 8GiB"));
            }
        };
        let enforced = machine.into_iter().flat_map(|machine| {
            let group = machine.group.map(|group| {
                let limit_bytes = group.limit_bytes;
                of_all(group.budget_bytes, SetBy::Group { limit_bytes })
            });
            let addresses = machine.address_limit_bytes.zip(machine.address_budget_bytes());
            let addresses = addresses.map(|(limit_bytes, bytes)| of_all(bytes, SetBy::Addresses { limit_bytes }));
            let data = machine.data_limit_bytes.map(|bytes| beside_weights(bytes, SetBy::Data));
            let total = beside_weights(machine.total_bytes, SetBy::Machine);
            [group, addresses, data, Some(total)].into_iter().flatten()
        });
        let left = |bound: &Bound| {
            let weights_bytes = if bound.budget.weights { weights_bytes } else { 0 };
            i128::from(bound.budget.bytes) - i128::from(weights_bytes)
        };
        Ok(wish.into_iter().chain(enforced).min_by_key(left))
    }
}

impl SetBy {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            SetBy::Asked => "--memory",
            SetBy::Free => "free now",
            SetBy::Group { .. } => "control group",
            SetBy::Addresses { .. } => "ulimit -v",
            SetBy::Data => "ulimit -d",
            SetBy::Machine => "this machine",
        }
    }
}

impl Bound {
    /// Who allows no more, where that is not what was typed.
    pub fn words(&self) -> Option<String> {
        let bytes = mib(self.budget.bytes);
        Some(match self.by {
            SetBy::Asked => return None,
            SetBy::Free => format!("--memory auto: {bytes} are free for this process now"),
            SetBy::Group { limit_bytes } if limit_bytes > self.budget.bytes => {
                let limit = mib(limit_bytes);
                format!(
                    "the control group of this process allows {limit}; beside what others in it take, {bytes} are left"
                )
            }
            SetBy::Group { .. } => format!("the control group of this process allows {bytes}"),
            SetBy::Addresses { limit_bytes } => {
                let (limit, empty) = (mib(limit_bytes), mib(limit_bytes.saturating_sub(self.budget.bytes)));
                format!(
                    "ulimit -v allows {limit} of addresses; code and stacks that take addresses but no memory need {empty} of \
                     them, {bytes} are left"
                )
            }
            SetBy::Data => format!("ulimit -d allows this process {bytes} beside mapped files"),
            SetBy::Machine => format!("this machine has {bytes}"),
        })
    }

    /// In few words, beside what fits in it.
    pub fn short_words(&self) -> String {
        let beside = if self.budget.weights { "" } else { " beside the weights" };
        match self.by {
            SetBy::Asked => mib(self.budget.bytes),
            by => format!("{}{beside} ({})", mib(self.budget.bytes), by.name()),
        }
    }
}

/// What to say where nothing is refused, but mapped weights and all else together are more than the machine has.
pub fn paging_warning(total_bytes: u64, machine: Option<Memory>) -> Option<String> {
    let machine = machine.filter(|machine| total_bytes > machine.total_bytes)?;
    Some(format!(
        "{} in all are more than the {} of this machine: weights will be read from disk again and again, which is slow",
        mib(total_bytes),
        mib(machine.total_bytes)
    ))
}

/// A number and a unit. Decimal places are exact: whole bytes, rounded down.
fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit: u128 = match unit.trim_start() {
        "" | "B" => 1,
        "KB" | "kB" => 1000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return None,
    };
    let (whole, places) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |digits: &str| (1..=20).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(places) || places.len() > 9 || unit == 1 && number.contains('.') {
        return None;
    }
    let part = places.parse::<u128>().ok()? * unit / 10u128.pow(places.len() as u32);
    u64::try_from(whole.parse::<u128>().ok()?.checked_mul(unit)?.checked_add(part)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Group;
    use crate::memory::tests::{NO_LIMITS, machine_with};

    #[test]
    fn sizes_are_read_exactly() {
        for (text, expected) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("1KB", 1000),
            ("1KiB", 1024),
            ("2MB", 2_000_000),
            ("2MiB", 2 << 20),
            ("3GB", 3_000_000_000),
            ("3GiB", 3 << 30),
            ("3 GiB", 3 << 30),
            ("1.5GiB", 3 << 29),
            ("0.001MB", 1000),
        ] {
            assert_eq!(Limit::parse(text).unwrap(), Limit::Bytes(expected), "{text}");
        }
        assert_eq!(Limit::parse("auto").unwrap(), Limit::Auto);
        for text in
            ["", "GiB", "2G", "2gib", "-1", "1e9", "1.GiB", ".5GiB", "1.5", "1.2.3GiB", "99999999999GiB", "2GiBs"]
        {
            let message = Limit::parse(text).unwrap_err().to_string();
            assert!(message.starts_with(&format!("--memory is `{text}`, expected")), "{message}");
        }
    }

    /// Bytes, whether weights count, and who says so.
    fn of(limit: Limit, machine: Option<Memory>, weights_bytes: u64) -> Option<(u64, bool, &'static str)> {
        let bound = limit.bound(machine, weights_bytes).unwrap()?;
        Some((bound.budget.bytes, bound.budget.weights, bound.by.name()))
    }

    /// What the process alone may have limits all but weights; what it may map limits weights too.
    #[test]
    fn groups_and_processes_may_be_limited_too() {
        let machine = |data: &str, space: &str| {
            let text = format!(
                "Limit                     Soft Limit           Hard Limit           Units\n\
                 Max data size             {data}               unlimited            bytes\n\
                 Max address space         {space}              unlimited            bytes\n"
            );
            Some(machine_with(&format!("limits-{data}-{space}"), &text, "4:memory:/\n", &[]))
        };
        let (total, free) = ((1_024_000, false, "this machine"), (614_400, true, "free now"));
        let (data, addresses) = ((500_000, false, "ulimit -d"), (900_000, true, "ulimit -v"));
        for (limits, weights_bytes, enforced, auto) in [
            (("unlimited", "unlimited"), 0, total, free),
            (("500000", "unlimited"), 0, data, data),
            // Of what is free weights count, of data they do not: what is narrower depends on them.
            (("500000", "unlimited"), 200_000, data, free),
            (("500000", "900000"), 0, data, data),
            (("500000", "900000"), 600_000, addresses, free),
            (("unlimited", "2000000"), 0, total, free),
            (("unlimited", "2000000"), 1_000_000, (2_000_000, true, "ulimit -v"), free),
        ] {
            let machine = machine(limits.0, limits.1);
            assert_eq!(of(Limit::Enforced, machine, weights_bytes), Some(enforced), "{limits:?}");
            assert_eq!(of(Limit::Auto, machine, weights_bytes), Some(auto), "{limits:?}");
            assert_eq!(of(Limit::Bytes(77), machine, weights_bytes), Some((77, true, "--memory")), "{limits:?}");
            assert_eq!(of(Limit::Bytes(1 << 40), machine, weights_bytes), Some(enforced), "{limits:?}");
        }
    }

    /// Nor does `--memory` lift what a group enforces, which is what others leave of it.
    #[test]
    fn a_group_allows_what_others_leave() {
        let group = |budget_bytes| Some(Group { limit_bytes: 400_000, budget_bytes });
        let within = |budget_bytes| Some(Memory { group: group(budget_bytes), total_bytes: 400_000, ..NO_LIMITS });
        let words = |machine| Limit::Bytes(1 << 40).bound(machine, 1).unwrap().unwrap().words().unwrap();
        assert_eq!(of(Limit::Enforced, within(300_000), 1), Some((300_000, true, "control group")));
        assert_eq!(
            words(within(300_000)),
            "the control group of this process allows 0.4 MiB; beside what others in it take, 0.3 MiB are left"
        );
        assert_eq!(words(within(400_000)), "the control group of this process allows 0.4 MiB");
        let addresses = Memory { address_limit_bytes: Some(350_000), empty_address_bytes: 50_000, ..NO_LIMITS };
        let words = words(Some(Memory { total_bytes: 1 << 30, ..addresses }));
        assert!(words.starts_with("ulimit -v allows 0.3 MiB of addresses;") && words.ends_with("are left"), "{words}");
    }

    #[test]
    fn what_nobody_limits_is_limited_by_the_machine_without_weights() {
        let machine = Some(NO_LIMITS);
        let total = Some((10, false, "this machine"));
        assert_eq!(of(Limit::Enforced, machine, 100), total);
        assert_eq!(of(Limit::Auto, machine, 0), Some((5, true, "free now")));
        assert_eq!(of(Limit::Bytes(7), machine, 0), Some((7, true, "--memory")));
        // A size is a wish: it makes no machine larger.
        assert_eq!(of(Limit::Bytes(1 << 40), machine, 100), total);
        assert_eq!(of(Limit::Bytes(7), None, 100), Some((7, true, "--memory")));
        assert_eq!(of(Limit::Enforced, None, 100), None);
        assert!(Limit::Auto.bound(None, 0).is_err());
        assert!(paging_warning(11, machine).is_some());
        assert_eq!(paging_warning(10, machine), None);
    }
}
