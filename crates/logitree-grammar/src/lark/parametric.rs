//! Rules with a parameter, `name::_`: a number of 64 bits, expressions of it, and conditions on it.
//!
//! A rule is made for each value that it is used with. llguidance makes them while a text is read; here those that can be
//! reached are made ahead.

use super::super::problems::excerpt;
use super::ast::{Bits, Compared, Condition, Parameter};
use super::lexer::Kind;
use super::parser::{Parser, Read};

/// Maximum nesting of conditions.
const MAX_NESTED: usize = 50;

impl Parameter {
    /// The value, where the rule's own is `own`.
    pub(super) fn value(&self, own: u64) -> u64 {
        match *self {
            Parameter::Own => own,
            Parameter::Number(number) => number,
            Parameter::Set(bit) => own | 1 << bit,
            Parameter::Clear(bit) => own & !(1 << bit),
            Parameter::And(mask) => own & mask,
            Parameter::Or(mask) => own | mask,
            Parameter::Increment(bits) if bits.of(own) < bits.ones() => own + (1 << bits.from),
            Parameter::Decrement(bits) if bits.of(own) > 0 => own - (1 << bits.from),
            Parameter::Increment(_) | Parameter::Decrement(_) => own,
        }
    }

    /// Whether it depends on the rule's own value.
    pub(super) fn is_own(&self) -> bool {
        !matches!(self, Parameter::Number(_))
    }
}

impl Bits {
    const ALL: Bits = Bits { from: 0, to: 64 };

    /// These bits of a number.
    fn of(self, number: u64) -> u64 {
        number >> self.from & self.ones()
    }

    /// All of them set.
    fn ones(self) -> u64 {
        u64::MAX >> (64 - (self.to - self.from))
    }
}

impl Condition {
    /// Whether it holds for a value.
    pub(super) fn holds(&self, own: u64) -> bool {
        match self {
            Condition::True => true,
            Condition::Value(bits, compared, number) => compared.holds(bits.of(own), *number),
            Condition::Count(bits, compared, number) => {
                compared.holds(u64::from(bits.of(own).count_ones()), *number)
            }
            Condition::All(one, other) => one.holds(own) && other.holds(own),
            Condition::Any(one, other) => one.holds(own) || other.holds(own),
            Condition::Not(of) => !of.holds(own),
        }
    }
}

impl Compared {
    fn named(name: &str) -> Option<Compared> {
        Some(match name {
            "eq" => Compared::Equal,
            "ne" => Compared::Unequal,
            "lt" => Compared::Less,
            "le" => Compared::NotMore,
            "gt" => Compared::More,
            "ge" => Compared::NotLess,
            _ => return None,
        })
    }

    fn holds(self, one: u64, other: u64) -> bool {
        match self {
            Compared::Equal => one == other,
            Compared::Unequal => one != other,
            Compared::Less => one < other,
            Compared::NotMore => one <= other,
            Compared::More => one > other,
            Compared::NotLess => one >= other,
        }
    }
}

impl<'t> Parser<'t, '_> {
    /// The value that a rule is used with, after its `::`.
    pub(super) fn parameter(&mut self) -> Read<Parameter> {
        if self.eat(b'_') {
            return Some(Parameter::Own);
        }
        if self.kind() == Kind::Number {
            return self.wide_number().map(Parameter::Number);
        }
        let at = self.at();
        let name = self.function()?;
        let made = match name {
            "set_bit" => Parameter::Set(self.bit()?),
            "clear_bit" => Parameter::Clear(self.bit()?),
            "bit_and" => Parameter::And(self.wide_number()?),
            "bit_or" => Parameter::Or(self.wide_number()?),
            "incr" => Parameter::Increment(self.bits()?),
            "decr" => Parameter::Decrement(self.bits()?),
            _ => {
                let help = "known are _, a number, set_bit, clear_bit, bit_and, bit_or, incr and decr";
                self.problems.add(
                    at,
                    format!("unknown value of a parameter {}", excerpt(self.text, at)),
                    help,
                );
                return None;
            }
        };
        self.expect(b')', "the value")?;
        Some(made)
    }

    /// What follows `%if`.
    pub(super) fn condition(&mut self, nested: usize) -> Read<Condition> {
        let at = self.at();
        if nested == MAX_NESTED {
            self.problems.add(at, format!("conditions nest more than {MAX_NESTED} deep"), "");
            return None;
        }
        if self.kind() == Kind::Rule && self.said(self.peek()) == "true" && !self.is_called() {
            self.advance();
            return Some(Condition::True);
        }
        let name = self.function()?;
        let made = match name {
            "true" => Condition::True,
            "bit_clear" | "bit_set" => {
                let from = self.bit()?;
                let bits = Bits { from, to: from + 1 };
                Condition::Value(bits, Compared::Equal, u64::from(name == "bit_set"))
            }
            "is_ones" => {
                let bits = self.bits()?;
                Condition::Value(bits, Compared::Equal, bits.ones())
            }
            "is_zeros" => Condition::Value(self.bits()?, Compared::Equal, 0),
            "and" | "or" => {
                let one = Box::new(self.condition(nested + 1)?);
                self.expect(b',', "a condition")?;
                let other = Box::new(self.condition(nested + 1)?);
                if name == "and" {
                    Condition::All(one, other)
                } else {
                    Condition::Any(one, other)
                }
            }
            "not" => Condition::Not(Box::new(self.condition(nested + 1)?)),
            _ => {
                let (counts, compared) = match name.strip_prefix("bit_count_") {
                    Some(rest) => (true, Compared::named(rest)),
                    None => (false, Compared::named(name)),
                };
                let Some(compared) = compared else {
                    let help = "known are true, bit_clear, bit_set, is_ones, is_zeros, eq, ne, lt, le, gt, ge, bit_count_eq \
                                and so on, and, or, not";
                    self.problems.add(at, format!("unknown condition {}", excerpt(self.text, at)), help);
                    return None;
                };
                let bits = self.bits()?;
                self.expect(b',', "the bits")?;
                let number = self.wide_number()?;
                if counts {
                    Condition::Count(bits, compared, number)
                } else {
                    Condition::Value(bits, compared, number)
                }
            }
        };
        self.expect(b')', "the condition")?;
        Some(made)
    }

    /// A name and its `(`.
    fn function(&mut self) -> Read<&'t str> {
        if self.kind() != Kind::Rule {
            return self.unexpected("a function of the parameter must come here", "");
        }
        let token = self.advance();
        self.expect(b'(', "its name")?;
        Some(self.said(token))
    }

    fn is_called(&self) -> bool {
        self.tokens.get(self.next + 1).is_some_and(|token| token.kind == Kind::Sign(b'('))
    }

    fn wide_number(&mut self) -> Read<u64> {
        let at = self.at();
        if self.kind() != Kind::Number {
            return self.unexpected("a number must come here", "it is written 12 or 0x0C");
        }
        let token = self.advance();
        let said = self.said(token);
        let number = match said.strip_prefix("0x").or_else(|| said.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => said.parse(),
        };
        if number.is_err() {
            self.problems.add(at, format!("`{said}` is no number of 64 bits"), "");
        }
        number.ok()
    }

    fn bit(&mut self) -> Read<u32> {
        let at = self.at();
        let number = self.wide_number()?;
        if number > 63 {
            self.problems.add(at, format!("there is no bit {number}"), "the last one is 63");
            return None;
        }
        Some(number as u32)
    }

    /// `[from:to]`, or `_` for all.
    fn bits(&mut self) -> Read<Bits> {
        if self.eat(b'_') {
            return Some(Bits::ALL);
        }
        let at = self.at();
        self.expect(b'[', "the parenthesis")?;
        let from = self.wide_number()?;
        self.expect(b':', "the first bit")?;
        let to = self.wide_number()?;
        self.expect(b']', "the last bit")?;
        if from >= to || to > 64 {
            self.problems.add(
                at,
                format!("there are no bits [{from}:{to}]"),
                "the first comes before the last, up to 64",
            );
            return None;
        }
        Some(Bits { from: from as u32, to: to as u32 })
    }
}
