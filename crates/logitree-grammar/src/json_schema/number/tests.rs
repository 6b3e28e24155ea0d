//! Number languages against an oracle that writes every number out in full and compares strings; doubles as Python
//! prints them; hostile sets.

use std::cmp::Ordering;
use std::collections::{HashSet, VecDeque};

use super::super::decimal::Decimal;
use super::walk::Constraints;
use super::*;

/// The language of the set.
fn regex(numbers: &NumberSet) -> Result<Regex> {
    super::regex(numbers).map(|(regex, _)| regex)
}

/// A generator of draws that are always the same (xorshift64).
struct Draws(u64);

impl Draws {
    fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn below(&mut self, n: usize) -> usize {
        ((self.draw() >> 32) as usize) % n
    }
    fn one_of<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
    fn some_of(&mut self, from: &[&str], most: usize) -> Vec<String> {
        (0..self.below(most + 1)).map(|_| self.one_of(from).to_string()).collect()
    }
}

/// A number written out: its sign, its digits before the point, its digits after it; no zeros at its ends.
#[derive(Debug, Clone)]
struct Full {
    negative: bool,
    whole: String,
    fraction: String,
}

impl Full {
    fn new(text: &str) -> Full {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i32 = exponent.parse().unwrap();
        let unsigned = mantissa.trim_start_matches('-');
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let (mut whole, mut fraction) = (whole.to_string(), fraction.to_string());
        for _ in 0..exponent {
            fraction.push('0');
            whole.push(fraction.remove(0));
        }
        for _ in exponent..0 {
            whole.insert(0, '0');
            fraction.insert(0, whole.pop().unwrap());
        }
        let (whole, fraction) = (whole.trim_start_matches('0').into(), fraction.trim_end_matches('0').into());
        Full { negative: mantissa.starts_with('-'), whole, fraction }
    }
    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }
    fn cmp(&self, other: &Full) -> Ordering {
        let sign = |x: &Full| if x.is_zero() { 0 } else { 1 - 2 * i32::from(x.negative) };
        let size = |x: &Full| (x.whole.len(), x.whole.clone(), x.fraction.clone());
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            1 => size(self).cmp(&size(other)),
            _ => size(other).cmp(&size(self)),
        })
    }
    fn is_multiple(&self, of: &Full) -> bool {
        let places = of.fraction.len();
        let of: u64 = format!("{}{}", of.whole, of.fraction).parse().unwrap();
        let digits = format!("{}{:0<places$}", self.whole, self.fraction);
        let rest = digits.bytes().fold(0, |rest, digit| (rest * 10 + u64::from(digit - b'0')) % of);
        self.fraction.len() <= places && rest == 0
    }
}

/// The set in the oracle's terms.
struct Oracle {
    integer: Option<bool>,
    minimum: Option<(Full, bool)>,
    maximum: Option<(Full, bool)>,
    multiples: Vec<Full>,
    not_multiples: Vec<Full>,
    excluded: Vec<Full>,
}

impl Oracle {
    fn new(numbers: &NumberSet) -> Oracle {
        let bound = |b: &Option<NumberBound>| b.as_ref().map(|b| (Full::new(&b.value), b.exclusive));
        let all = |texts: &[String]| texts.iter().map(|text| Full::new(text)).collect();
        Oracle {
            integer: numbers.integer,
            minimum: bound(&numbers.minimum),
            maximum: bound(&numbers.maximum),
            multiples: all(&numbers.multiples),
            not_multiples: all(&numbers.not_multiples),
            excluded: all(&numbers.excluded),
        }
    }
    fn has(&self, value: &Full) -> bool {
        let beyond = |bound: &Option<(Full, bool)>, side| {
            bound.as_ref().is_some_and(|(bound, exclusive)| match value.cmp(bound) {
                Ordering::Equal => *exclusive,
                order => order == side,
            })
        };
        self.integer.is_none_or(|integer| integer == value.fraction.is_empty())
            && !beyond(&self.minimum, Ordering::Less)
            && !beyond(&self.maximum, Ordering::Greater)
            && self.multiples.iter().all(|of| value.is_multiple(of))
            && !self.not_multiples.iter().any(|of| value.is_multiple(of))
            && !self.excluded.iter().any(|other| value.cmp(other) == Ordering::Equal)
    }
    /// Whether numbers of the set are spelled so.
    fn spells(&self, text: &str) -> bool {
        let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else { return true };
        let mantissa = mantissa.trim_start_matches('-');
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let short = whole.len() == 1 && whole != "0" && exponent.trim_start_matches(['+', '-']).len() <= 3;
        let divided = self.integer.is_some() || self.multiples.len() + self.not_multiples.len() > 0;
        let clean = fraction.len() <= 16 && (fraction == "0" || !fraction.ends_with('0'));
        short && (!divided || clean)
    }
}

/// Whether `text` is `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`, part by part.
fn is_json(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))
        && digits(whole)
        && digits(fraction)
        && (whole == "0" || !whole.starts_with('0'))
}

/// Whether `regex` reads `text`: languages of numbers are automata or nothing.
fn reads(regex: &Regex, text: &str) -> bool {
    match regex {
        Regex::Nothing => false,
        Regex::Automaton(dfa) => {
            let end = text.bytes().try_fold(Dfa::START, |state, byte| dfa.next(state, byte));
            end.is_some_and(|state| dfa.is_accepting(state))
        }
        Regex::Computed(dfa) => {
            let end = text.bytes().try_fold(dfa.start(), |state, byte| dfa.next(state, byte));
            end.is_some_and(|state| dfa.is_accepting(state))
        }
        other => panic!("{other:?}"),
    }
}

/// Whether the value of `text` is in the set, whatever its spelling.
fn contains(numbers: &NumberSet, text: &str) -> Result<bool> {
    Ok(Constraints::read(numbers)?.contains(&Decimal::read_bounded(text)?))
}

/// Holds the automaton of `numbers` against the checker, on texts that are written out already.
fn check<'a>(numbers: &NumberSet, texts: impl IntoIterator<Item = &'a (String, Option<Full>)>) -> usize {
    let oracle = Oracle::new(numbers);
    let regex = regex(numbers).unwrap_or_else(|error| panic!("{error} {numbers:?}"));
    let mut found = 0;
    for (text, value) in texts {
        let has = value.as_ref().is_some_and(|value| oracle.has(value));
        assert_eq!(reads(&regex, text), has && oracle.spells(text), "{text} {numbers:?}");
        if value.is_some() && oracle.spells(text) {
            assert_eq!(contains(numbers, text).unwrap(), has, "{text} {numbers:?}");
        }
        found += usize::from(has);
    }
    found
}

fn written(text: String) -> (String, Option<Full>) {
    let value = is_json(&text).then(|| Full::new(&text));
    (text, value)
}

fn bound(value: impl ToString, exclusive: bool) -> Option<NumberBound> {
    Some(NumberBound { value: value.to_string(), exclusive })
}

const BOUNDS: [&str; 26] = [
    "0",
    "-0",
    "-0.0",
    "1",
    "-1",
    "0.5",
    "-0.5",
    "1e3",
    "1.5e-3",
    "-2.5",
    "10",
    "99",
    "100",
    "0.05",
    "-0.015",
    "12",
    "123.45",
    "1e40",
    "-1e40",
    "1e-3",
    "20",
    "512",
    "0.1",
    "2e1",
    "-12.5e1",
    "10000000000000000000000000000000000000000",
];
const MULTIPLES: [&str; 25] = [
    "1", "2", "3", "5", "7", "10", "12", "25", "100", "0.5", "0.1", "0.01", "2.5", "0.3", "1e-8", "1e3",
    "0.25", "64", "1.0", "127", "6.75", "1000000", "1331", "37", "2.125",
];

/// A random set: bounds more often than not, few multiples.
fn numbers(draws: &mut Draws) -> NumberSet {
    let side = |draws: &mut Draws| match draws.below(3) {
        0 => None,
        kind => bound(draws.one_of(&BOUNDS), kind == 1),
    };
    NumberSet {
        digits_only: false,
        integer: [None, None, Some(true), Some(false)][draws.below(4)],
        minimum: side(draws),
        maximum: side(draws),
        multiples: if draws.below(2) == 0 { draws.some_of(&MULTIPLES, 2) } else { Vec::new() },
        not_multiples: if draws.below(4) == 0 { draws.some_of(&MULTIPLES, 2) } else { Vec::new() },
        excluded: if draws.below(3) == 0 { draws.some_of(&BOUNDS, 3) } else { Vec::new() },
    }
}

/// Whether something is asked: otherwise more spellings are taken.
fn asks(numbers: &NumberSet) -> bool {
    *numbers != NumberSet::default()
}

/// Whether scientific spellings are taken.
fn is_small(numbers: &NumberSet) -> bool {
    !numbers.multiples.iter().chain(&numbers.not_multiples).any(|of| of == "1331" || of == "127")
}

#[test]
fn every_short_text_is_read_exactly_if_it_is_in_the_set() {
    let alphabet = b"0125-.eE+";
    let mut texts = vec![String::new()];
    let mut from = 0;
    for _ in 0..5 {
        let past = texts.len();
        for at in from..past {
            let start = texts[at].clone();
            texts.extend(alphabet.iter().map(|&byte| format!("{start}{}", char::from(byte))));
        }
        from = past;
    }
    // Exponents of hundreds are the next test's: they take long to write out.
    let texts: Vec<_> = texts
        .into_iter()
        .filter(|text| {
            text.split(['e', 'E']).nth(1).is_none_or(|e| e.trim_start_matches(['+', '-']).len() <= 2)
        })
        .map(written)
        .collect();
    let mut draws = Draws(1);
    let (mut found, mut done) = (0, 0);
    while done < 100 {
        let numbers = numbers(&mut draws);
        if asks(&numbers) && is_small(&numbers) {
            found += check(&numbers, &texts);
            done += 1;
        }
    }
    assert!(found > 10_000, "{found}");
}

#[test]
fn long_texts_are_read_exactly_if_they_are_in_the_set() {
    let mut draws = Draws(2);
    let mut texts = Vec::new();
    for _ in 0..4000 {
        let mut text = String::from(["", "", "-"][draws.below(3)]);
        let digits = |draws: &mut Draws, most: usize| -> String {
            let of = draws.one_of(&["0123456789", "01", "05", "09"]);
            (0..1 + draws.below(most)).map(|_| of.as_bytes()[draws.below(of.len())] as char).collect()
        };
        let most = [1, 4, 45][draws.below(3)];
        let whole = digits(&mut draws, most);
        text += Some(whole.trim_start_matches('0')).filter(|whole| !whole.is_empty()).unwrap_or("0");
        if draws.below(2) == 0 {
            let most = [2, 4, 20][draws.below(3)];
            text += &format!(".{}", digits(&mut draws, most));
        }
        if draws.below(2) == 0 {
            let exponent = digits(&mut draws, 3);
            text += &format!("{}{}{exponent}", draws.one_of(&["e", "E"]), draws.one_of(&["", "+", "-"]));
        }
        texts.push(written(text));
    }
    for _ in 0..200 {
        let numbers = numbers(&mut draws);
        if asks(&numbers) && is_small(&numbers) {
            check(&numbers, &texts);
        }
    }
}

#[test]
fn integers_and_decimals_between_random_bounds() {
    let texts: Vec<_> = (-2000..=2000)
        .flat_map(|n: i32| {
            [format!("{n}"), format!("{n}.0"), format!("{n}.5"), format!("{:e}", f64::from(n))]
        })
        .chain((0..10_000).map(|n| format!("{}.{:04}", n % 3, n)))
        .map(written)
        .collect();
    let mut draws = Draws(3);
    for round in 0..60 {
        let mut side = || {
            let whole = draws.below(4400) as i64 - 2200;
            let value = if draws.below(2) == 0 { whole.to_string() } else { format!("{whole}e-3") };
            bound(value, draws.below(2) == 0)
        };
        let (minimum, maximum) = (side(), side());
        let integer = [None, Some(true), Some(false)][round % 3];
        check(&NumberSet { integer, minimum, maximum, ..NumberSet::default() }, &texts);
    }
}

#[test]
fn multiples_that_need_many_remainders_are_spelled_plainly() {
    let texts: Vec<_> = (0..40_000)
        .flat_map(|n: u32| [format!("{n}"), format!("-{n}.0"), format!("{}.{}", n / 10, n % 10)])
        .map(written)
        .collect();
    for of in ["1331", "13.31", "4096"] {
        let multiples = vec![of.to_string()];
        let numbers = NumberSet { multiples, minimum: bound("-300", false), ..NumberSet::default() };
        assert!(check(&numbers, &texts) > 10);
        assert!(!reads(&regex(&numbers).unwrap(), "1.331e+30"));
    }
}

#[test]
fn numbers_about_which_nothing_is_said() {
    let free = regex(&NumberSet::default()).unwrap();
    for text in ["0", "-0", "12", "1.50", "1e5", "1E+999999", "12.34e-5", "0e0", "-0.0E0"] {
        assert!(reads(&free, text), "{text}");
    }
    for text in ["", "-", "+1", "01", "1.", ".5", "1e", "1e+", "1.e5", "--1", "1 ", "0x1", "NaN", "1e5.5"] {
        assert!(!reads(&free, text), "{text}");
    }
    let whole = regex(&NumberSet { integer: Some(true), ..NumberSet::default() }).unwrap();
    let read =
        ["0", "-0", "-0.0", "12", "1.0", "12.000", "1e+16", "1.5e+300", "1E5", "1.25e2", "1.0e0", "2e00"];
    for text in read.iter().chain(&["123456789012345678901234567890", "1.7976931348623157e+308"]) {
        assert!(reads(&whole, text), "{text}");
    }
    for text in
        ["1.5", "0.1", "1.25e1", "1e-1", "1e-07", "1.0e-1", "12e1", "1.50e5", "1e1000", "00", "1.", "-"]
    {
        assert!(!reads(&whole, text), "{text}");
    }
    let fractions = regex(&NumberSet { integer: Some(false), ..NumberSet::default() }).unwrap();
    for (text, is) in
        [("1.5", true), ("0.10", true), ("1e-07", true), ("1.25e1", true), ("1.0", false), ("0", false)]
    {
        assert_eq!(reads(&fractions, text), is, "{text}");
    }
}

#[test]
fn empty_sets_are_nothing() {
    let between = |minimum, maximum| NumberSet { minimum, maximum, ..NumberSet::default() };
    let empty = [
        between(bound("1", true), bound("1", false)),
        between(bound("0", false), bound("-0.0", true)),
        between(bound("5", false), bound("4.999", false)),
        NumberSet { integer: Some(true), ..between(bound("0.1", false), bound("0.9", false)) },
        NumberSet { integer: Some(false), multiples: vec!["2".into()], ..NumberSet::default() },
        NumberSet {
            multiples: vec!["7".into(), "11".into()],
            ..between(bound("1", false), bound("76", false))
        },
        NumberSet {
            not_multiples: vec!["0.5".into()],
            multiples: vec!["2.5".into()],
            ..NumberSet::default()
        },
        NumberSet {
            excluded: vec!["3".into(), "4e0".into()],
            integer: Some(true),
            ..between(bound(3, false), bound(4, false))
        },
    ];
    for numbers in empty {
        assert_eq!(regex(&numbers).unwrap(), Regex::Nothing, "{numbers:?}");
    }
    let zero = regex(&between(bound("0", false), bound("-0", false))).unwrap();
    assert!(["0", "-0", "0.0", "-0.000"].iter().all(|text| reads(&zero, text)) && !reads(&zero, "0.01"));
    let one = regex(&between(bound("1e40", false), bound("1e40", false))).unwrap();
    assert!(reads(&one, &format!("1{}", "0".repeat(40))) && reads(&one, "1e+40") && reads(&one, "1.000e40"));
    assert!(
        !reads(&one, &format!("1{}", "0".repeat(39))) && !reads(&one, "1e+41") && !reads(&one, "1.01e40")
    );
}

/// The text that Python's `json.dumps` writes: `repr` of a float.
fn dumps(value: f64) -> String {
    let shortest = format!("{value:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[test]
fn doubles_are_read_as_python_writes_them() {
    assert_eq!(
        [1e16, 1.5e300, 1e-5, 0.0001, -0.0, 123456.0].map(dumps).join(" "),
        "1e+16 1.5e+300 1e-05 0.0001 -0.0 123456.0"
    );
    let mut draws = Draws(4);
    let mut double = |kind: usize| loop {
        let bits = f64::from_bits(draws.draw());
        let uniform = (draws.draw() >> 11) as f64 / 2f64.powi(53);
        let value =
            [bits, uniform * 200.0 - 100.0, (uniform * 1e5).round() / 100.0, (uniform * 1e9).round()][kind];
        if value.is_finite() {
            return value;
        }
    };
    let mut inside = 0;
    for round in 0..100 {
        let (kind, exclusive) = (round % 4, round % 8 < 4);
        let (a, b) = (double(kind), double((kind + round / 50) % 4));
        let (low, high) = (a.min(b), a.max(b));
        let integer = [None, Some(true), Some(false)][round % 3];
        let (minimum, maximum) = (bound(dumps(low), exclusive), bound(dumps(high), !exclusive));
        let regex = regex(&NumberSet { integer, minimum, maximum, ..NumberSet::default() }).unwrap();
        for at in 0..1000 {
            let value = [low, high, double(at % 4)][at.min(2)];
            let within = if exclusive { low < value && value <= high } else { low <= value && value < high };
            let wanted = within && integer.is_none_or(|integer| integer == (value.fract() == 0.0));
            assert_eq!(reads(&regex, &dumps(value)), wanted, "{} {low} {high} {integer:?}", dumps(value));
            inside += usize::from(wanted);
        }
    }
    assert!(inside > 10_000, "{inside}");
}

/// Pairs of states that are compared, those of short texts first.
const PAIRS: usize = 5_000;

/// Holds the computed automaton of `numbers` against the table of plain decimals in lockstep; false if one of them would be too
/// large.
fn check_computed(numbers: &NumberSet) -> bool {
    let plain = if numbers.digits_only { DIGITS } else { ALPHABET.len() - 1 };
    let table = match explore(&mut NumberWalk::new(numbers).unwrap(), &ALPHABET[..plain], 4_000).0 {
        Explored::TooMany => return false,
        Explored::Nothing => None,
        Explored::Dfa(table) => Some(table),
    };
    let Some(computed) = arithmetic::computed(numbers).unwrap() else { return false };
    assert_eq!(computed.is_some(), table.is_some(), "{numbers:?}");
    let Some((computed, table)) = computed.zip(table) else { return true };
    let mut states = VecDeque::from([(computed.start(), Dfa::START)]);
    let mut known: HashSet<_> = states.iter().copied().collect();
    while let Some((one, other)) = states.pop_front().filter(|_| known.len() < PAIRS) {
        assert_eq!(computed.is_accepting(one), table.is_accepting(other), "{numbers:?}");
        for byte in 0..128 {
            let next = (computed.next(one, byte), table.next(other, byte));
            let (Some(one), Some(other)) = next else {
                assert_eq!(
                    (next.0.is_some(), next.1.is_some()),
                    (false, false),
                    "{byte} {one:?} {numbers:?}"
                );
                continue;
            };
            if known.insert((one, other)) {
                states.push_back((one, other));
            }
        }
    }
    true
}

#[test]
fn computed_automata_equal_tables() {
    const MULTIPLES: [&str; 12] = ["1", "2", "3", "7", "11", "12", "25", "0.5", "0.3", "0.01", "2.5", "1e2"];
    let mut draws = Draws(7);
    let mut checked = 0;
    for _ in 0..400 {
        let of_bound = |draws: &mut Draws| match draws.below(2) {
            0 => None,
            _ => bound(draws.one_of(&BOUNDS), draws.below(2) == 0),
        };
        let numbers = NumberSet {
            integer: [None, Some(true), Some(false)][draws.below(3)],
            digits_only: draws.below(6) == 0,
            minimum: of_bound(&mut draws),
            maximum: of_bound(&mut draws),
            multiples: draws.some_of(&MULTIPLES, 2),
            not_multiples: draws.some_of(&MULTIPLES, 3),
            excluded: draws.some_of(&["0", "1", "7", "-3", "12.5", "0.25", "100", "-0.5"], 3),
        };
        checked += usize::from(check_computed(&numbers));
    }
    assert!(checked > 200, "{checked}");
}

#[test]
fn multiples_of_many_digits_are_computed() {
    let of = |text: &str| NumberSet { multiples: vec![text.into()], ..NumberSet::default() };
    for text in ["123456789", "0.123456789", "9007199254740991", "12345678901234567890"] {
        let regex = regex(&of(text)).unwrap();
        assert!(matches!(regex, Regex::Computed(_)), "{text}");
        let oracle = |text: &str| Decimal::read(text).unwrap();
        for value in ["0", text, "-123456789", "246913578", "246913579", "0.37037036700", "0.3703703670001"] {
            assert_eq!(reads(&regex, value), oracle(value).is_multiple(&oracle(text)), "{value} of {text}");
        }
    }
    let even = NumberSet { not_multiples: vec!["2".into()], ..of("13") };
    let some = NumberSet {
        integer: Some(true),
        not_multiples: ["2", "3", "5", "7", "11"].map(String::from).to_vec(),
        minimum: bound(100, true),
        maximum: bound(1000, true),
        excluded: vec!["169".into()],
        ..of("13")
    };
    let [some, even] = [some, even].map(|numbers| regex(&numbers).unwrap());
    for n in 0..2000 {
        let divides = |by: i32| n % by == 0;
        let wanted =
            divides(13) && n > 100 && n < 1000 && ![2, 3, 5, 7, 11].into_iter().any(divides) && n != 169;
        assert_eq!(reads(&some, &n.to_string()), wanted, "{n}");
        assert_eq!(reads(&even, &n.to_string()), divides(13) && !divides(2), "{n}");
    }
    let nothing = NumberSet { minimum: bound(1, false), maximum: bound(123456788, false), ..of("123456789") };
    assert_eq!(regex(&nothing).unwrap(), Regex::Nothing);
}

#[test]
fn hostile_sets_end_in_errors() {
    let of = |text: &str| NumberSet { multiples: vec![text.into()], ..NumberSet::default() };
    let long = format!("1{}", "0".repeat(1_000_000));
    for text in
        ["1e1000000", "3e300", "12345678901234567890123456789012345678", "1234567890123456789e-300", &long]
    {
        let error = regex(&of(text)).unwrap_err();
        assert!(error.kind == ErrorKind::Limit && error.message.contains(&text[..3]), "{error}");
    }
    for text in ["0", "-2", "0.0", "x", ""] {
        assert_eq!(regex(&of(text)).unwrap_err().kind, ErrorKind::Constraint, "{text}");
    }
    let bounded = NumberSet { minimum: bound("1e-1000000", false), ..NumberSet::default() };
    assert_eq!(regex(&bounded).unwrap_err().kind, ErrorKind::Limit);
    let primes = (1000..2000u32).filter(|n| (2..45).all(|by| n % by > 0));
    let all =
        NumberSet { multiples: primes.map(|prime| prime.to_string()).collect(), ..NumberSet::default() };
    assert_eq!(regex(&all).unwrap_err().kind, ErrorKind::Limit);
    let most = NumberSet { excluded: (0..3000).map(|n| format!("{n}.25")).collect(), ..NumberSet::default() };
    let regex = regex(&most).unwrap();
    assert!(!reads(&regex, "1234.25") && !reads(&regex, "1.23425e3") && reads(&regex, "1234.251"));
}

#[test]
fn round_multiples_and_common_ranges_are_small() {
    let states = |numbers: &NumberSet| match regex(numbers).unwrap() {
        Regex::Automaton(dfa) => dfa.len(),
        other => panic!("{other:?}"),
    };
    let of = |text: &str| NumberSet { multiples: vec![text.into()], ..NumberSet::default() };
    assert!(states(&NumberSet::default()) < 12);
    assert!(states(&of("1000000000")) < 500 && states(&of("0.01")) < 200 && states(&of("1e-8")) < 500);
    let percent =
        NumberSet { integer: Some(true), minimum: bound(0, false), maximum: bound(100, false), ..of("1") };
    assert!(states(&percent) < 40, "{}", states(&percent));
}

/// A double as Python prints it.
fn python(value: f64) -> String {
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn has(regex: &Regex, text: &str) -> bool {
    let Regex::Automaton(dfa) = regex else { panic!("{regex:?} is no automaton") };
    let end = text.bytes().try_fold(Dfa::START, |state, byte| dfa.next(state, byte));
    end.is_some_and(|state| dfa.is_accepting(state))
}

#[test]
fn plain_numbers_are_what_doubles_are_written_as() {
    let plain = plain().unwrap();
    let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
    for _ in 0..20_000 {
        let value = f64::from_bits(draws.draw());
        if value.is_finite() {
            assert!(has(&plain, &python(value)), "{value:e}");
        }
        let usual = (draws.below(2_000_001) as f64 - 1e6) / [1.0, 10.0, 1e3, 1e6][draws.below(4)];
        assert!(has(&plain, &python(usual)), "{usual}");
    }
    let held = [f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, 0.0, -0.0, 1e16, 1e15, 0.0001, 0.1 + 0.2];
    assert!(held.iter().all(|&value| has(&plain, &python(value))));
    let whole = ["0", "-7", "9007199254740993", "18446744073709551615", "12.50", "1e5", "1.5E+007"];
    assert!(whole.iter().all(|text| has(&plain, text)));
}

#[test]
fn plain_numbers_are_finite_short_and_spelled_as_constrained_ones() {
    let plain = plain().unwrap();
    let all = comparable().unwrap();
    let Regex::Automaton(dfa) = &plain else { panic!("{plain:?} is no automaton") };
    let mut draws = Draws(0x2545_f491_4f6c_dd1d);
    let (mut found, mut longest) = (0, 0);
    for _ in 0..20_000 {
        let (mut state, mut text) = (Dfa::START, String::new());
        // Without an end of its own: until nothing more may come, mostly.
        while draws.below(40) > 0 {
            let next: Vec<(u8, u32)> =
                b"0123456789-+.eE".iter().filter_map(|&byte| Some((byte, dfa.next(state, byte)?))).collect();
            let Some(&(byte, to)) = next.get(draws.below(next.len().max(1))) else { break };
            (state, text) = (to, text + char::from(byte).encode_utf8(&mut [0; 4]));
        }
        if !dfa.is_accepting(state) {
            continue;
        }
        found += 1;
        longest = longest.max(text.len());
        let value: f64 = text.parse().unwrap();
        let is_zero = text.split(['e', 'E']).next().unwrap().bytes().all(|byte| b"-.0".contains(&byte));
        assert!(value.is_finite() && (value == 0.0) == is_zero, "{text}");
        assert!(has(&all, &text), "{text}");
        if text.contains(['.', 'e', 'E']) {
            let mantissa = text.split(['e', 'E']).next().unwrap().replace(['-', '.'], "");
            assert!(mantissa.trim_start_matches('0').len() <= 17, "{text}");
        }
    }
    assert!(found > 5_000 && longest < 320, "{found} found, the longest of {longest} bytes");
    let refused = [
        "1e400",
        "1.8e308",
        "1.7976931348623158e308",
        "4e-324",
        "0.123456789012345678",
        "-0",
        "1.",
        "-",
        "1e",
    ];
    assert!(refused.iter().all(|text| !has(&plain, text)));
    assert!(has(&plain, &"9".repeat(100)) && !has(&plain, &"9".repeat(101)));
}
