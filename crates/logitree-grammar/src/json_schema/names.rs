//! The names that users give the options of a schema. It refuses to know what the options do.

use super::schema::{Draft, Order, Whitespace};
use crate::{Error, ErrorKind, Result};

/// The value of this name among all.
fn find<T: Copy>(what: &str, name: &str, all: &[(&'static str, T)]) -> Result<T> {
    all.iter().find(|(known, _)| *known == name).map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|(known, _)| format!("{known:?}")).collect();
        Error::new(ErrorKind::Constraint, format!("{what} is {name:?}"))
            .help(format!("expected one of {}", names.join(", ")))
    })
}

/// The name of a value; every value has one.
fn name<T: PartialEq>(value: &T, all: &[(&'static str, T)]) -> &'static str {
    all.iter().find(|(_, known)| known == value).map_or("", |(name, _)| name)
}

impl Order {
    /// Every order by its name.
    pub const NAMES: [(&'static str, Order); 2] = [("schema", Order::Schema), ("any", Order::Any)];

    /// Its name.
    pub fn name(self) -> &'static str {
        name(&self, &Order::NAMES)
    }

    /// The order of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for any other.
    pub fn from_name(name: &str) -> Result<Order> {
        find("order", name, &Order::NAMES)
    }
}

impl Whitespace {
    /// Every amount by its name.
    pub const NAMES: [(&'static str, Whitespace); 3] =
        [("bounded", Whitespace::Bounded), ("compact", Whitespace::Compact), ("free", Whitespace::Free)];

    /// Its name.
    pub fn name(self) -> &'static str {
        name(&self, &Whitespace::NAMES)
    }

    /// The amount of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for any other.
    pub fn from_name(name: &str) -> Result<Whitespace> {
        find("whitespace", name, &Whitespace::NAMES)
    }
}

impl Draft {
    /// Every draft by its name.
    pub const NAMES: [(&'static str, Draft); 5] = [
        ("2020-12", Draft::Draft2020),
        ("2019-09", Draft::Draft2019),
        ("7", Draft::Draft7),
        ("6", Draft::Draft6),
        ("4", Draft::Draft4),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        name(&self, &Draft::NAMES)
    }

    /// The draft of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`] for any other.
    pub fn from_name(name: &str) -> Result<Draft> {
        find("draft", name, &Draft::NAMES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_and_others_are_refused() {
        for (name, order) in Order::NAMES {
            assert_eq!((order.name(), Order::from_name(name).unwrap()), (name, order));
        }
        for (name, whitespace) in Whitespace::NAMES {
            assert_eq!((whitespace.name(), Whitespace::from_name(name).unwrap()), (name, whitespace));
        }
        for (name, draft) in Draft::NAMES {
            assert_eq!((draft.name(), Draft::from_name(name).unwrap()), (name, draft));
        }
        let error = Order::from_name("Any").unwrap_err();
        assert_eq!(error.to_string(), "order is \"Any\"; expected one of \"schema\", \"any\"");
    }
}
