//! The one CPU-feature dispatch: the width of the machine's vectors, and the macro that compiles a loop for each width.
#![allow(unsafe_code)] // calls of functions compiled for features that were detected

use std::sync::OnceLock;

/// Which compilation of a loop to run. A wide one exists only where the features were detected, so a value of this type
/// proves that the machine has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Width(pub(super) Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// What the target always has: SSE2 or NEON.
    Baseline,
    /// AVX2, FMA and POPCNT.
    #[cfg(target_arch = "x86_64")]
    Avx2(Detected),
    /// The same and AVX-512 F, BW, DQ and VL.
    #[cfg(target_arch = "x86_64")]
    Avx512 {
        detected: Detected,
        /// VPOPCNTDQ, where the machine has that too.
        vpopcntdq: Option<Detected>,
    },
}

/// Made in this file only, and only after the features were detected.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Detected(());

impl Width {
    /// The widest, detected once.
    #[inline]
    pub(super) fn best() -> Width {
        static BEST: OnceLock<Width> = OnceLock::new();
        *BEST.get_or_init(|| Width::all().pop().unwrap_or(Width(Kind::Baseline)))
    }

    /// Every width that this machine has, the narrowest first.
    pub(super) fn all() -> Vec<Width> {
        #[allow(unused_mut)] // machines other than x86-64 have one only
        let mut all = vec![Width(Kind::Baseline)];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("popcnt")
        {
            let detected = Detected(());
            all.push(Width(Kind::Avx2(detected)));
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                all.push(Width(Kind::Avx512 { detected, vpopcntdq: None }));
                if is_x86_feature_detected!("avx512vpopcntdq") {
                    all.push(Width(Kind::Avx512 { detected, vpopcntdq: Some(detected) }));
                }
            }
        }
        all
    }
}

/// Defines `$name`, which runs `$body` compiled for the machine's widest vectors, and `$at`, which runs it at a
/// given width. With AVX-512, `$other` can run instead.
macro_rules! widest {
    ($(#[$doc:meta])* $name:ident, $at:ident = $body:ident $(, avx512 $other:ident)?
        ($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        $(#[$doc])*
        #[inline]
        pub fn $name($($arg: $ty),*) -> $ret {
            $at($crate::simd::dispatch::Width::best(), $($arg),*)
        }

        $crate::simd::dispatch::at_width! { $at = $body $(, avx512 $other)?($($arg: $ty),*) -> $ret }
    };
}
pub(super) use widest;

/// Defines `$at`, which runs `$body` compiled for a width. `$body` is `#[inline(always)]`, and so is all that it
/// calls, as what is inlined takes on the features. What is passed as a function or a closure may not be inlined: a
/// `mul_add` in it would be a call.
macro_rules! at_width {
    ($at:ident = $body:ident($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        $crate::simd::dispatch::at_width! { $at = $body, avx512 $body($($arg: $ty),*) -> $ret }
    };
    ($at:ident = $body:ident, avx512 $other:ident($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        #[allow(unsafe_code)] // calls of functions compiled for features that `width` proves
        pub(in crate::simd) fn $at(width: $crate::simd::dispatch::Width, $($arg: $ty),*) -> $ret {
            use $crate::simd::dispatch::Kind;
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt")]
            fn avx512($($arg: $ty),*) -> $ret {
                $other($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $ty),*) -> $ret {
                $body($($arg),*)
            }
            match width.0 {
                Kind::Baseline => $body($($arg),*),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the width proves that the machine has the features.
                Kind::Avx2(_) => unsafe { avx2($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                Kind::Avx512 { .. } => unsafe { avx512($($arg),*) },
            }
        }
    };
}
pub(super) use at_width;
