//! The macro that defines ids: newtypes over `u32` that cannot be mixed up with each other or with counts.

/// Defines a newtype over `u32` that numbers the entries of one table.
///
/// ```
/// logitree_automata::id!(
///     /// The number of a colour.
///     pub struct ColourId
/// );
/// assert_eq!(ColourId::new(7).index(), 7);
/// ```
#[macro_export]
macro_rules! id {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $visibility struct $name(pub u32);

        #[allow(dead_code)]
        impl $name {
            /// The id of the entry at `index`, which must fit 32 bits.
            #[inline]
            pub const fn new(index: usize) -> Self {
                debug_assert!(index <= u32::MAX as usize);
                $name(index as u32)
            }

            /// The index of the entry in its table.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<u32> for $name {
            #[inline]
            fn from(id: u32) -> Self {
                $name(id)
            }
        }

        impl From<$name> for u32 {
            #[inline]
            fn from(id: $name) -> u32 {
                id.0
            }
        }
    };
}
